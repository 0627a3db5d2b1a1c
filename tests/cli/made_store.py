# A baseline store of made sessions: made_store.py DIR STATEMENT, where STATEMENT sets `value`, the series of step times. May also set
# accepted, commit, compiler and hostname, each a function of the session's place, counted from 0.
import datetime, json, math, os, random, sys

MACHINE = dict(machine="x86_64", cpu_model="Made up", cores_online="8", kernel="Linux 6.1", governor="performance", schema="1")
KEYS = [format(0x3f0c5a1f9e21d0aa + i, "x") for i in range(9)]


def write(folder, figures, accepted=lambda i: False, commit=lambda i: format(0xab1234500 + i, "x"), compiler=lambda i: "gcc 12.2.0",
          unit="ms", better="lower"):
    """A record a session; figures: {name: [values]}."""
    os.makedirs(folder, exist_ok=True)
    compilers = []
    for i in range(max(len(series) for series in figures.values())):
        if compiler(i) not in compilers: compilers.append(compiler(i))
        key = KEYS[compilers.index(compiler(i))]
        at = datetime.datetime(2026, 9, 1, 23, 35) + datetime.timedelta(days=i)
        session = dict(time_utc=at.strftime("%Y-%m-%dT%H:%M:%SZ"), hostname="h", commit=commit(i), dir="results/run-%d" % (i + 1),
                       run="%016x" % (i + 1), name="python train.py", program="python train.py", suspect=[], accepted=accepted(i),
                       figures={name: dict(unit=unit, better=better, value=series[i]) for name, series in figures.items()
                                if series[i] is not None})
        record = dict(schema=2, environment=dict(time_utc=session["time_utc"]), trials=[session],
                      machine=dict(fingerprint=key, fields=dict(MACHINE, compiler=compiler(i))))
        name = "%s-%s.%09d-%s.json" % (key, at.strftime("%Y%m%dT%H%M%S"), 0, session["run"])
        with open(os.path.join(folder, name), "w") as file: json.dump(record, file)


def noise(n, sd, seed=1):
    """Normal, [n], mean 0."""
    source = random.Random(seed)
    return [source.gauss(0, sd) for _ in range(n)]


if __name__ == "__main__":
    made = {}
    exec(sys.argv[2], dict(noise=noise, exp=math.exp), made)
    write(sys.argv[1], {"step": made.pop("value")}, **made)
