"""variables.py ROOT LISTED: every environment variable that the sources read is in LISTED (what 'evenload help environment' printed),
which docs/install.md repeats; every one that a script reads is in docs/install.md or CONTRIBUTING.md."""
import fnmatch
import glob
import os
import re
import sys

root, listed = sys.argv[1], open(sys.argv[2]).read()


def texts(*patterns):
    paths = [path for pattern in patterns for path in glob.glob(f'{root}/{pattern}', recursive=True) if os.path.isfile(path)]
    return {path: open(path).read() for path in paths if not path.endswith('.pyc')}


def names_of(listed):
    rows = [re.match(r'  (\S+(?: \S+)*)(?:  |$)', line) for line in listed.splitlines()]
    return [name for row in rows if row for name in row[1].split(', ')]


def read_by_program():
    sources = texts(*(f'{room}/**/*.[ch]' for room in ('bench', 'runtime', 'profiles', 'kernels')))
    launcher = sources[f'{root}/runtime/launch/environment.c'].split('static bool begins_with')[0]
    text = ''.join(sources.values())
    launchers = {'PMI', 'PMIX'} # names of launchers, not of variables
    return (set(re.findall(r'getenv\("(\w+)"', text)) | set(re.findall(r'#define EL_LAUNCH_\w+ +"(EVENLOAD_\w+)"', text))
            | set(re.findall(r'"([A-Z][A-Z0-9_]+[A-Z0-9])"', launcher))) - launchers


def read_by_scripts():
    text = ''.join(text for path, text in texts('scripts/**/*').items() if '/examples/' not in path)
    given = set(re.findall(r'\$\{([A-Z][A-Z0-9_]+):?[-+]', text))
    own = set(re.findall(r'(?:^|[ (;])([A-Z][A-Z0-9_]+)\+?=', text, re.M))
    return (given - own - {'HOME'}) | set(re.findall(r'\$\{?((?:EVENLOAD|GPU_CHECK)\w*)', text))


page = open(f'{root}/docs/install.md').read()
block = ''.join('  ' + line if line.strip() else line for line in listed.splitlines(True)[2:])
program, scripts = read_by_program(), read_by_scripts()
assert {'RANK', 'NO_COLOR', 'EVENLOAD_SECRET', 'PMI_RANK'} <= program and {'EVENLOAD', 'MODULESHOME'} <= scripts
missing = [name for name in sorted(program) if not any(fnmatch.fnmatch(name, row) for row in names_of(listed))]
assert not missing, f"read by the program, and not in 'evenload help environment': {missing}"
assert block in page, "docs/install.md has another list than 'evenload help environment'"
missing = [name for name in sorted(scripts) if f'`{name}`' not in page + open(f'{root}/CONTRIBUTING.md').read()]
assert not missing, f'read by a script, and in no page: {missing}'
