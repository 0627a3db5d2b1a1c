"""Inputs: every parser's target (tests/fuzz) is given so many, changed from its seeds. By libFuzzer, with the address and the
undefined-behaviour sanitizer, where clang is there; else by the driver of tests/fuzz."""
import os, re, subprocess, time
from common import find, several

# An input that is found is tried again with the sanitizers' own values: these cost no stack a piece of memory.
QUICKER = 'malloc_context_size=1:quarantine_size_mb=4:allocator_may_return_null=1'


def build():
    """(the folder of the targets, by what they are run)."""
    log = open('build/attack/build.log', 'wb')
    made = subprocess.run(['make', '-j', str(os.cpu_count()), 'fuzz'], stdout=log, stderr=subprocess.STDOUT).returncode == 0
    if made:
        return 'build/fuzz/tests/fuzz', 'libFuzzer'
    subprocess.run(['make', '-j', str(os.cpu_count()), 'check'], stdout=log, stderr=subprocess.STDOUT, check=True)
    return 'build/tests/fuzz', 'the driver, no sanitizer'


def attack(options):
    place, by = build()
    names = sorted(f[:-2] for f in os.listdir('tests/fuzz') if re.fullmatch(r'fuzz_\w+\.c', f))
    end, left = time.monotonic() + options.minutes * 60, [*names]
    print(f'  {len(names)} parsers by {by}', flush=True)

    def one(name):
        seconds = max(1, (end - time.monotonic()) * options.jobs / len(left))  # what others did not need, the next have
        left.remove(name)
        work, short = f'build/attack/inputs/{name}', name.removeprefix('fuzz_')
        for folder in ('corpus', 'files'):
            os.makedirs(f'{work}/{folder}', exist_ok=True)
        memory = f'/dev/shm/el-attack-{os.getpid()}-{short}'
        os.makedirs(memory, exist_ok=True)
        words = [f'{place}/{name}', f'-runs={options.inputs}', f'-seed={options.seed}', f'-max_total_time={seconds:.0f}']
        libfuzzer = ['-timeout=30', '-print_final_stats=1', '-max_len=12288', f'-artifact_prefix={work}/', f'{work}/corpus']
        words += [*(libfuzzer if by == 'libFuzzer' else []), f'tests/fuzz/corpus/{short}']
        begin = time.monotonic()
        with open(f'{work}/log', 'wb') as log:
            status = subprocess.run(words, stdout=log, stderr=log, env={**os.environ, 'ASAN_OPTIONS': QUICKER, 'EL_FUZZ_FOLDER': memory}).returncode
        subprocess.run(['rm', '-rf', memory])
        with open(f'{work}/log', errors='replace') as log:
            text = log.read()
        n = re.search(r'number_of_executed_units: (\d+)|seeds, (\d+) inputs', text)
        n = int(n[1] or n[2]) if n else 0
        why = re.search(r'runtime error.*|ERROR: \w+Sanitizer.*|ERROR: libFuzzer.*|fuzz: this does not hold.*', text)
        if status:
            find(f'{name}: {why[0] if why else f"exit status {status}"}', f'{work}/log')
        print(f'  {name}: {n} inputs in {time.monotonic() - begin:.0f} s', flush=True)
        return f'{short:12}{n:9} inputs in {time.monotonic() - begin:5.0f} s by {by}: {int(status != 0)} found', int(status != 0)

    return several(options.jobs, one, names)
