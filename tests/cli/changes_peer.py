# The change points of `baseline show` beside those of the package ruptures (PELT) on 200 made series: changes_peer.py EVENLOAD FOLDER.
# Noise, clipping and penalty are computed here again, by numpy; the penalty's factor for correlation is the program's own.
import json, os, subprocess, sys
import numpy as np, ruptures
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import made_store

MIN, SERIES, LENGTHS = 5, 50, (30, 60, 120, 200)
source = np.random.default_rng(4)


def made(n):
    """Up to four steps at random places, of 1 to 15 %, by noise of 0.5 to 4 %; a third has heavy tails."""
    sd, y = source.uniform(0.005, 0.04), np.zeros(n)
    for at in source.integers(1, n, source.integers(0, 5)): y[at:] += source.choice((-1, 1)) * source.uniform(0.01, 0.15)
    e = source.standard_t(4, n) / 2 ** 0.5 if source.random() < 1 / 3 else source.normal(size=n)
    return list(50 * np.exp(y + sd * e))


def scaled(values):
    """In units of the noise, odd sessions moved to 3 of it from their neighbours' median."""
    logs = np.log(values)
    sd = max(1.4826 * np.median(abs(np.diff(logs))) / 2 ** 0.5, 0.001)
    near = np.array([np.median(logs[max(0, i - 2):i + 3]) for i in range(len(logs))])
    return np.clip(logs, near - 3 * sd, near + 3 * sd) / sd


def cost(y, cuts):
    return sum(((part - part.mean()) ** 2).sum() for part in np.split(y, cuts))


same = within = changes = worse = 0
for n in LENGTHS:
    store = os.path.join(sys.argv[2], "store%d" % n)
    series = {"f%d" % k: made(n) for k in range(SERIES)}
    made_store.write(store, series)
    shown = json.loads(subprocess.run([sys.argv[1], "baseline", "show", "--json", "--store", store], stdout=subprocess.PIPE, check=True).stdout)
    figures = shown["machines"][0]["workloads"][0]["figures"]
    for name, values in series.items():
        history, y = figures[name]["history"], scaled(values)
        ours = [session - 1 for session in history["partition"]]
        theirs = ruptures.Pelt(model="l2", min_size=MIN, jump=1).fit(y).predict(pen=history["penalty"])[:-1]
        agree = len(ours) == len(theirs) and all(abs(a - b) <= 1 for a, b in zip(ours, theirs))
        same += ours == theirs
        within += agree
        changes += len(ours)
        ahead = cost(y, ours) + len(ours) * history["penalty"] - cost(y, theirs) - len(theirs) * history["penalty"]
        worse += ahead > 1e-6 * len(y)
        if ours != theirs: print(n, name, ours, theirs, "ours costs %+.3g" % ahead)
total = SERIES * len(LENGTHS)
print("ruptures %s: %d of %d series have the same %d changes, %d within one session; ours costs more in %d"
      % (ruptures.__version__, same, total, changes, within, worse))
sys.exit(int(within < total - 2 or worse > 0))
