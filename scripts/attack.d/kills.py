"""Kills: a process of a short command (the command itself, mpirun, a rank or worker, the program under `regress` or `watch`) is killed,
stopped or interrupted at a random moment. Then: the command ends within --timeout and a grace, leaves no process and no half a file,
and the same `compare` again comes to the same trials as a run that nobody disturbed."""
import json, os, random, shutil, signal, time
from common import Command, GRACE_S, QUICK, TIMEOUT_S, clean, find, processes, send, several, torn

SIGNALS = [signal.SIGKILL] * 3 + [signal.SIGSTOP, signal.SIGTERM, signal.SIGINT]
STEPS = ['--timeout', str(TIMEOUT_S)]
GNUPLOT_S = 60  # a picture's own time limit
PRINT = "sleep 0.03; echo step_ms $(( 100 + $$ % 3 )) ms"


def commands(evenload):
    """{name: words}; the folder that each writes is `out`."""
    ddp = [evenload, 'run', *QUICK, *STEPS, '--mode', 'ddp', '--devices', '2', '--out', 'out']
    compare = [evenload, 'compare', *QUICK, *STEPS, '--devices', '2', '--repeats', '2', '--out', 'out']
    found = {
        'run ddp, own ranks': [*ddp, '--launcher', 'own'],
        'run ddp, tcp': [*ddp, '--launcher', 'own', '--comm', 'tcp'],
        'run dp': [evenload, 'run', *QUICK, *STEPS, '--mode', 'dp', '--devices', '2', '--out', 'out'],
        'compare': [*compare, '--launcher', 'own', '--modes', 'single,dp,ddp'],
        'compare, null': [*compare[:-6], '--devices', 'null:2', '--repeats', '2', '--out', 'out', '--procs', '1'],
        'regress --ab': [evenload, 'regress', '--ab', PRINT, PRINT, '--blocks', '14', '--quiet', '--out', 'out', *STEPS],
        'watch': [evenload, 'watch', '--quiet', '--out', 'out', '--', 'sh', '-c', 'sleep 0.4 & sleep 0.3; sleep 0.3; wait'],
    }
    if shutil.which('mpirun'):
        found['run ddp, mpirun'] = [*ddp, '--launcher', 'mpirun']
        found['compare, mpirun'] = [*compare, '--launcher', 'mpirun', '--modes', 'dp,ddp', '--control', 'none']
    return found


def trials_of(folder):
    with open(f'{folder}/out/results.json') as file:
        return [(t['mode'], t['status'], len(t['repeats'])) for t in json.load(file)['trials']]


def disturb(command, draw, usual_s):
    """Sends a signal to one of the command's processes; returns (pid, the signal, who in words), or None: it had ended before."""
    time.sleep(draw.uniform(0, usual_s))
    alive = processes(command.token)
    if not alive or command.process.poll() is not None:
        return None
    pid = command.process.pid if draw.random() < 0.3 else draw.choice(sorted(alive))
    number = draw.choice(SIGNALS)
    if not send(pid, number):
        return None
    return pid, number, 'itself' if pid == command.process.pid else alive.get(pid, '?')[:60]


def resume(command, wanted):
    """What is wrong with going on; None: nothing."""
    again = Command(command.words, command.folder)
    status = again.end(120)
    if status != 0:
        return f'going on: exit status {status}: {again.stderr()[-300:]}'
    got = trials_of(command.folder)
    return None if got == wanted else f'going on: {got} instead of {wanted}'


def judge(evenload, name, command, hit, wanted):
    """What does not hold, in words; and how many files were looked at."""
    pid, number, who = hit
    itself = pid == command.process.pid
    left_alone = itself or name == 'watch'  # nobody is there who could end it: it goes on when it is told to
    if number == signal.SIGSTOP and left_alone:
        time.sleep(0.3)
        send(pid, signal.SIGCONT)
    status = command.end(GNUPLOT_S + GRACE_S if who.startswith('gnuplot') else TIMEOUT_S + GRACE_S)
    bad = []
    if status is None:
        bad.append('it hung')
    elif status < 0 and not (itself and number == -status):
        bad.append(f'it was ended by signal {-status}, which nobody sent it')
    if name == 'watch' and itself and number == signal.SIGKILL:
        command.sweep()  # the command is the user's, and goes on without its watcher
    elif left := command.left():
        bad.append(f'left behind: {list(left.values())}')
        command.sweep()
    half, n = torn(command.folder)
    bad += half
    if wanted and not bad and (wrong := resume(command, wanted)):
        bad.append(wrong)
    return [f'{name}: {signal.Signals(number).name} to {who}: {words}' for words in bad], n


def attack(options):
    usual, wanted, work = {}, {}, os.path.abspath('build/attack/kills')
    clean(work)
    for name, words in commands(options.evenload).items():
        command = Command(words, f'{work}/undisturbed')
        status = command.end(120)
        usual[name] = time.monotonic() - command.begin
        if status != 0:
            find(f'{name}: undisturbed it has exit status {status}: {command.stderr()[-300:]}', command.folder)
            return [(f'{name} does not run at all', 1)]
        if name.startswith('compare'):
            wanted[name] = trials_of(command.folder)
        clean(command.folder)
    done = []

    def one(i):
        draw = random.Random(options.seed * 1000003 + i)
        name = draw.choice(sorted(usual))
        command = Command(commands(options.evenload)[name], f'{work}/{i}')
        hit = disturb(command, draw, usual[name] * 1.1)
        bad, n = judge(options.evenload, name, command, hit, wanted.get(name)) if hit else ([], 0)
        if not hit:
            command.end()
        for words in bad:
            find(words, command.folder)
        if not bad:
            clean(command.folder)
        done.append(i)
        if len(done) % 20 == 0:
            print(f'  {len(done)} of {options.kills}', flush=True)
        return name, hit, bad, n

    results = [r for r in several(options.jobs, one, range(options.kills)) if r[1]]
    rows = []
    for name in sorted(usual):
        mine = [r for r in results if r[0] == name]
        by = ', '.join(f'{sum(r[1][1] == s for r in mine)} {signal.Signals(s).name}' for s in sorted(set(SIGNALS)))
        found = sum(bool(r[2]) for r in mine)
        more = f', {len(mine)} resumed' if name in wanted else ''
        rows.append((f'{name:20}{len(mine):5} hit ({by}), {sum(r[3] for r in mine)} files whole{more}: {found} found', found))
    return rows
