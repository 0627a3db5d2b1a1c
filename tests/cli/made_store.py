# Baseline stores of made sessions, one a day: made_store.py [DIR STATEMENT]..., where STATEMENT sets `value`, the series of step times (None:
# not measured). It may also set unit and better, and accepted, commit and compiler, functions of the session's place, counted from 0.
import json, math, os, random, sys, time

MACHINE = dict(machine="x86_64", cpu_model="Made up", cores_online="8", kernel="Linux 6.1", governor="performance", schema="1")
FIRST = 1788305700  # 2026-09-01 23:35 UTC
KEYS = [format(0x3f0c5a1f9e21d0aa + i, "x") for i in range(9)]


def write(folder, figures, accepted=lambda i: False, commit=lambda i: format(0xab1234500 + i, "x"), compiler=lambda i: "gcc 12.2.0",
          unit="ms", better="lower"):
    """A record a session; figures: {name: [values]}."""
    os.makedirs(folder, exist_ok=True)
    compilers = []
    for i in range(max(len(series) for series in figures.values())):
        if compiler(i) not in compilers: compilers.append(compiler(i))
        key = KEYS[compilers.index(compiler(i))]
        at = time.gmtime(FIRST + 86400 * i)
        session = dict(time_utc=time.strftime("%Y-%m-%dT%H:%M:%SZ", at), hostname="h", commit=commit(i), dir="results/run-%d" % (i + 1),
                       run="%016x" % (i + 1), name="python train.py", program="python train.py", suspect=[], accepted=accepted(i),
                       figures={name: dict(unit=unit, better=better, value=series[i]) for name, series in figures.items()
                                if series[i] is not None})
        record = dict(schema=2, environment=dict(time_utc=session["time_utc"]), trials=[session],
                      machine=dict(fingerprint=key, fields=dict(MACHINE, compiler=compiler(i))))
        name = "%s-%s.%09d-%s.json" % (key, time.strftime("%Y%m%dT%H%M%S", at), 0, session["run"])
        with open(os.path.join(folder, name), "w") as file: json.dump(record, file)


def noise(n, sd, seed=1):
    """Normal, [n], mean 0."""
    source = random.Random(seed)
    return [source.gauss(0, sd) for _ in range(n)]


if __name__ == "__main__":
    for folder, statement in zip(sys.argv[1::2], sys.argv[2::2]):
        made = {}
        exec(statement, dict(noise=noise, exp=math.exp), made)
        write(folder, {"step": made.pop("value")}, **made)
