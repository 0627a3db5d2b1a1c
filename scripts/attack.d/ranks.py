"""Ranks: one rank of three is killed at a random moment of `evenload comm`, while all are in a collective, over shared memory, TCP and
MPI in turn. Then: the command ends within five seconds and names that rank; no process and no segment of shared memory is left."""
import os, random, shutil, time
from common import Command, clean, find, processes, send, several

WITHIN_S, RANKS = 5, 3
OPERATIONS = ['all_reduce', 'broadcast', 'reduce', 'all_gather', 'reduce_scatter', 'alltoall', 'scatter', 'gather']
SIZES = ['64', '4K', '64K', '1M', '8M']


def kinds():
    return ['shm', 'tcp'] + (['mpi'] if shutil.which('mpirun') else [])


def ranks_of(token):
    """{rank: pid} of the command's ranks that live."""
    found = {}
    for pid, words in processes(token).items():
        try:
            with open(f'/proc/{pid}/environ', 'rb') as file:
                environment = dict(entry.partition(b'=')[::2] for entry in file.read().split(b'\0'))
        except OSError:
            continue
        rank = environment.get(b'OMPI_COMM_WORLD_RANK') or environment.get(b'RANK')
        if rank and ' worker ' in words:
            found[int(rank)] = pid
    return found


def segments_of(pids):
    """What the processes have in /dev/shm: mapped or open, or in a folder there."""
    found = set()
    for pid in pids:
        try:
            with open(f'/proc/{pid}/maps') as file:
                paths = [line.split(maxsplit=5)[-1].strip() for line in file]
            paths += [os.readlink(f'/proc/{pid}/fd/{fd}') for fd in os.listdir(f'/proc/{pid}/fd')]
        except OSError:
            continue
        found |= {'/'.join(path.split('/')[:4]) for path in paths if path.startswith('/dev/shm/')}
    return found


def kill_one(command, draw):
    """Kills a rank in the middle of its collectives; returns (rank, what the command had in /dev/shm), or None: it did not come so far."""
    until = time.monotonic() + 30
    while len(ranks := ranks_of(command.token)) < RANKS:
        if time.monotonic() > until or command.process.poll() is not None:
            return None
        time.sleep(0.05)
    time.sleep(0.2 + draw.uniform(0, 0.4))
    rank = draw.randrange(RANKS)
    segments = segments_of(processes(command.token))
    return (rank, segments) if send(ranks[rank], 9) else None


def judge(command, rank, segments):
    begin = time.monotonic()
    status = command.end(30)
    took_s, bad = time.monotonic() - begin, []
    if status is None or took_s > WITHIN_S:
        bad.append(f'it ended {"never" if status is None else f"after {took_s:.1f} s"}')
    if status == 0:
        bad.append('it has exit status 0')
    if not any(f'rank {rank} {words}' in command.said() for words in ('was killed', 'is gone', '(process')):  # by its launcher, or by another rank
        bad.append(f'it does not name rank {rank}: {command.said()[-200:]}')
    if left := command.left():
        bad.append(f'left behind: {list(left.values())}')
        command.sweep()
    if left := [path for path in segments if os.path.exists(path)]:
        bad.append(f'left in shared memory: {left}')
    return bad, took_s


def attack(options):
    work = os.path.abspath('build/attack/ranks')
    clean(work)

    def one(i):
        draw = random.Random(options.seed * 1000003 + i)
        kind, operation, size = kinds()[i % len(kinds())], draw.choice(OPERATIONS), draw.choice(SIZES)
        words = [options.evenload, 'comm', operation, '-b', size, '-e', size, '-n', '10000', '-w', '0', '-c', '0', '--devices', str(RANKS),
                 '--comm', kind, '--launcher', 'mpirun' if kind == 'mpi' else 'own', '--quiet', '--timeout', '60', '--out', 'out']
        command = Command(words, f'{work}/{i}')
        if hit := kill_one(command, draw):
            bad, took_s = judge(command, *hit)
        else:
            command.sweep()
            command.end()
            bad, took_s = [f'it ended, or did not begin, before a rank could be killed: {command.said()[-200:]}'], 0
        for found in bad:
            find(f'{kind}, {operation} of {size}: {found}', command.folder)
        if not bad:
            clean(command.folder)
        return kind, bool(bad), took_s

    results = several(options.jobs, one, range(options.ranks))
    rows = []
    for kind in sorted({kind for kind, _, _ in results}):
        mine = [r for r in results if r[0] == kind]
        found, longest_s = sum(bad for _, bad, _ in mine), max(took_s for _, _, took_s in mine)
        rows.append((f'{kind:20}{len(mine):5} ranks killed, the last process gone after {longest_s:.1f} s at most: {found} found', found))
    return rows
