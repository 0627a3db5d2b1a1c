"""Limits: short commands with too little of what the system grants. Each ends within its time-out, in its own words, and leaves no
process and no half a file."""
import os, subprocess
from common import Command, QUICK, TIMEOUT_S, clean, find, several, torn

# name: shell words before the command, and where its streams go
LIMITS = {f'{n} open files': (f'ulimit -n {n}', '') for n in (4, 6, 8, 10, 12, 16, 20, 24, 32, 64)}
LIMITS |= {f'files of at most {n} KiB': (f'ulimit -f {n}', '') for n in (1, 4, 16, 64)}
LIMITS |= {f'{n} MiB of address space': (f'ulimit -v {n * 1024}', '') for n in (10, 50, 100, 200, 400, 1000)}
LIMITS |= {f'{n} KiB of stack': (f'ulimit -s {n}', '') for n in (256, 1024)}
LIMITS |= {'standard input closed': (':', '<&-'), 'standard output closed': (':', '>&-'), 'standard error closed': (':', '2>&-'),
           'all three closed': (':', '<&- >&- 2>&-'), 'standard output full': (':', '>/dev/full'), 'both full': (':', '>/dev/full 2>/dev/full'),
           'no PATH': ('export PATH=/nowhere', ''), 'no HOME, no environment': ('unset HOME PATH LANG', '')}
# By root alone, in a mount name space of its own.
MOUNTS = {f'a disk of {n} KiB': f'mkdir -p out; mount -t tmpfs -o size={n}k none out; cd out' for n in (4, 16, 64, 256, 1024)}
MOUNTS |= {f'/dev/shm of {n} KiB': f'mount -t tmpfs -o size={n}k none /dev/shm' for n in (4, 64, 1024, 8192)}
MOUNTS |= {'no /dev/shm, no /tmp': 'mount -t tmpfs -o ro none /dev/shm; mount -t tmpfs -o ro none /tmp', 'no /proc': 'mount -t tmpfs none /proc',
           'no /sys': 'mount -t tmpfs none /sys'}


def commands(evenload):
    more = [*QUICK, '--timeout', str(TIMEOUT_S), '--out', 'r']
    return {'run dp': [evenload, 'run', *more, '--mode', 'dp', '--devices', '2'],
            'run ddp, own': [evenload, 'run', *more, '--mode', 'ddp', '--devices', '2', '--launcher', 'own'],
            'run ddp, tcp': [evenload, 'run', *more, '--mode', 'ddp', '--devices', '2', '--launcher', 'own', '--comm', 'tcp'],
            'run ddp, mpirun': [evenload, 'run', *more, '--mode', 'ddp', '--devices', '2', '--launcher', 'mpirun'],
            'compare': [evenload, 'compare', *more, '--modes', 'single,dp', '--devices', 'null:2', '--repeats', '2'],
            'regress': [evenload, 'regress', '--ab', 'echo x 1 bytes', 'echo x 1 bytes', '--blocks', '12', '--quiet', '--out', 'r'],
            'watch': [evenload, 'watch', '--quiet', '--out', 'r', '--', '/bin/sleep', '0.2'], 'devices': [evenload, 'devices']}


def judge(command, status, streams, hidden):
    bad = []
    if status is None:
        bad.append('it hung')
    elif status < 0 or status > 128 + 64 or 128 < status <= 192 and status != 130:
        bad.append(f'exit status {status}')
    elif status not in (0, 126, 127) and not streams and not command.said().strip():
        bad.append(f'exit status {status}, and not a word why')
    if status == 0 and ('>/dev/full' in streams) and command.words[-1] == 'devices':
        bad.append('exit status 0, and its output is lost')
    if not hidden and (left := command.left()):
        bad.append(f'left behind: {list(left.values())}')
    command.sweep()
    return bad + torn(command.folder)[0]


def attack(options):
    work = os.path.abspath('build/attack/limits')
    clean(work)
    may_mount = os.geteuid() == 0 and subprocess.run(['unshare', '-m', 'mount', '-t', 'tmpfs', 'none', '/mnt'], stderr=subprocess.DEVNULL).returncode == 0
    if not may_mount:
        print('  disks and /dev/shm are left out: only root can mount small ones')
    asked = [(limit, name, words) for limit in [*LIMITS, *(MOUNTS if may_mount else [])] for name, words in commands(options.evenload).items()]

    def one(item):
        i, (limit, name, words) = item
        before, streams = LIMITS.get(limit) or (MOUNTS[limit], '')
        shell = ['sh', '-c', f'{before} || exit 126; exec "$@" {streams}', 'sh', *words]
        command = Command(shell if limit in LIMITS else ['unshare', '-m', *shell], f'{work}/{i}')
        bad = judge(command, command.end(), streams, limit == 'no /proc')
        for found in bad:
            find(f'{limit}: {name}: {found}', command.folder)
        if not bad:
            clean(command.folder)
        return limit in MOUNTS, bool(bad)

    results = several(options.jobs, one, enumerate(asked))
    rows = [('limits of a process', [b for m, b in results if not m]), ('disks and mounts', [b for m, b in results if m])]
    return [(f'{what:20}{len(found):5} tried: {sum(found)} found', sum(found)) for what, found in rows if found]
