"""A command under attack, and what must hold when it has ended, whatever ended it: it ended in time, no process of it is left, and no
file of it is half written."""
import csv, json, os, shutil, signal, subprocess, threading, time, uuid

GRACE_S = 25  # beyond --timeout: two cores may be shared with others
TIMEOUT_S = 4
QUICK = '--model mlp --features 8 --hidden 4 --data dummy --batch 8 --warmup 1 --steps 2 --min-time 0 --quiet'.split()
_lock = threading.Lock()


def processes(token):
    """{pid: command line} of all living processes that have the token in their environment."""
    found = {}
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/environ', 'rb') as file:
                if token not in file.read():
                    continue
            with open(f'/proc/{pid}/stat') as file:
                if file.read().rsplit(')', 1)[1].split()[0] in 'ZX':
                    continue
            with open(f'/proc/{pid}/cmdline', 'rb') as file:
                found[int(pid)] = file.read().replace(b'\0', b' ').decode(errors='replace').strip()
        except OSError:
            continue
    return found


def send(pid, number):
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


class Command:
    """words, started in a folder of its own; every process of it can be found."""

    def __init__(self, words, folder, **more):
        self.words, self.folder, self.token = words, folder, f'EL_ATTACK={uuid.uuid4().hex}'.encode()
        os.makedirs(folder, exist_ok=True)
        name, value = self.token.decode().split('=')
        streams = {'stdin': subprocess.DEVNULL, 'stdout': open(f'{folder}/stdout', 'wb'), 'stderr': open(f'{folder}/stderr', 'wb')}
        self.begin = time.monotonic()
        self.process = subprocess.Popen(words, cwd=folder, env={**os.environ, name: value}, start_new_session=True, **{**streams, **more})
        for stream in streams.values():
            if stream != subprocess.DEVNULL:
                stream.close()

    def end(self, seconds=TIMEOUT_S + GRACE_S):
        """Its exit status; None: it was still there after so many seconds, and is killed."""
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.sweep()
            self.process.wait()
            return None

    def left(self, seconds=5):
        """What of it is still there after its end, when it had so long to go."""
        until = time.monotonic() + seconds
        while (found := processes(self.token)) and time.monotonic() < until:
            time.sleep(0.05)
        return found

    def sweep(self):
        for pid in processes(self.token):
            send(pid, signal.SIGKILL)

    def stderr(self):
        with open(f'{self.folder}/stderr', errors='replace') as file:
            return file.read()

    def said(self):
        with open(f'{self.folder}/stdout', errors='replace') as file:
            return file.read() + self.stderr()


def torn(folder):
    """Files that are half written, and how many were looked at."""
    bad, n = [], 0
    for path in [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]:
        try:
            if path.endswith('.json'):
                with open(path) as file:
                    json.load(file)
            elif path.endswith('.csv'):
                with open(path, newline='') as file:
                    rows = list(csv.reader(file))
                if not rows or any(len(row) != len(rows[0]) for row in rows):
                    raise ValueError('rows of unequal length')
            else:
                continue
            n += 1
        except (ValueError, UnicodeDecodeError) as error:
            bad.append(f'{path}: {error}')
    return bad, n


def find(words, folder):
    """Says what was found; the folder is kept."""
    with _lock:
        print(f'  FOUND {words}\n    in {folder}', flush=True)


def clean(folder):
    shutil.rmtree(folder, ignore_errors=True)


def several(jobs, work, items):
    """work(item) for each, so many at a time; their results in order."""
    results, places = {}, list(enumerate(items))[::-1]

    def run():
        while True:
            with _lock:
                if not places:
                    return
                place, item = places.pop()
            results[place] = work(item)

    threads = [threading.Thread(target=run) for _ in range(max(1, jobs))]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return [results[place] for place in sorted(results)]
