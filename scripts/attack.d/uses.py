"""Uses: command lines that cannot be meant (a table), and every option of `run` and `regress` with odd values. A bad use is exit status
2 and a line or two on standard error, without control characters, and leaves nothing behind. (Hostile names in records:
tests/cli/names.bats.)"""
import os, re
from common import Command, QUICK, clean, find, several

BAD = """
nosuch|run --mode nosuch|run --nosuch 1|run --mode|run extra|compare --modes|compare --modes single,,dp|compare --modes dp,dp,nosuch
run --batch 0|run --batch -1|run --batch x|run --batch 99999999999999999999|run --steps 0|run --steps 1e3|run --warmup -1|run --repeats 0
run --devices 0|run --devices nosuch:2|run --devices cpu:9999999|run --devices cuda:77|run --procs 3|run --mode ddp --batch 1 --devices 2
run --mode dp --procs 2 --devices 2|run --timeout -1|run --timeout x|run --lr x|run --lr nan|run --optimizer momentum=2|run --model dropout=1.5|run --seed -1
run --data nosuch.txt|run --data /dev/zero|run --data .|run --test nosuch.txt|run --vocab 0|run --epochs 0|run --inject foo|run --inject wire=
run --inject delay=9:1|run --inject straggler=0:-1|run --devices mem=5XB|run --devices mem=-1|run --comm nosuch
run --launcher nosuch|run --optimizer nosuch|run --precision f16|run --zero-grad maybe|run --model nosuch|run --hidden x|run --hidden 1,2,3,
run --epochs 2 --steps 5|run --batch 8 --batch-per-device 8|run --out /proc/x|run --out /dev/null|run --out /dev/null/x|compare nosuch
plot|plot nosuch|plot /dev/null|plot --term nosuch|scale nosuch|scale --strong --weak
scale --devices 0|compare --bucket-mb 0|compare --bucket-mb x|imbalance nosuch|imbalance --preset nosuch
regress|regress --ab true|regress --ab true true --blocks 1|regress --ab true true --blocks x|regress --baseline nosuch|regress --current nosuch
regress --ab true true --budget x|regress --ab true true --min-effect -1|baseline nosuch|baseline add|baseline add nosuch|watch|watch --
watch --interval 0 -- true|watch --interval x -- true|worker|worker measure|worker gate a b c d e|worker measure /x 0 0 /x id --mode nosuch
help nosuch|devices extra|devices --nosuch
""".strip().replace('\n', '|').split('|')
VALUES = ['', '-1', '1e999', 'nan', '99999999999999999999', '1,2,,3', 'x' * 3000, '\x1b[31m\n%s', '../..']
CONTROL = re.compile('[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]')


def look(command, status, wanted):
    """What does not hold, in words."""
    bad, words = [], command.stderr()
    if status is None or status < 0:
        return [f'exit status {status}']
    if status not in wanted:
        bad.append(f'exit status {status}')
    if status == 2 and not 1 <= words.count('\n') <= 2:
        bad.append(f'{words.count(chr(10))} lines on standard error')
    if (raw := CONTROL.search(command.said())):
        bad.append(f'control character {raw[0]!r} printed')
    return bad


def refused(evenload, words, folder):
    command = Command([evenload, *words], folder)
    bad = look(command, command.end(60), [1, 2] if words[0] == 'worker' else [2])
    left = sorted(set(os.listdir(folder)) - {'stdout', 'stderr'})
    return bad + ([f'left behind: {left}'] if left else [])


def options_of(evenload, command):
    found = Command([evenload, command, '--help', 'all'], 'build/attack/uses/help')
    found.end()
    with open('build/attack/uses/help/stdout') as file:
        return sorted(set(re.findall(r'^  (--[a-z0-9-]+)[ =][A-Z]', file.read(), re.M)) - {'--out', '--store'})


def odd_value(evenload, words, folder):
    """Good or bad by its own words: but said in a line, and nothing run."""
    command = Command([evenload, *words], folder)
    return look(command, command.end(60), [0, 2])


def attack(options):
    work = os.path.abspath('build/attack/uses')
    clean(work)
    asked = [('bad uses refused', refused, (line.split(),)) for line in BAD]
    asked += [('odd values', odd_value, (['run', *QUICK[:-1], '--dry-run', f'{option}={value}'],))
              for option in options_of(options.evenload, 'run') for value in VALUES]
    asked += [('odd values', odd_value, (['regress', f'{option}={value}', '--ab', 'false', 'false'],))
              for option in options_of(options.evenload, 'regress') for value in VALUES if option not in ('--ab', '--junit', '--markdown')]

    def one(item):
        i, (kind, function, arguments) = item
        bad = function(options.evenload, *arguments, f'{work}/{i}')
        for words in bad:
            find(f'{kind}: {arguments}: {words}'[:600], f'{work}/{i}')
        if not bad:
            clean(f'{work}/{i}')
        return kind, bool(bad)

    results = several(options.jobs, one, enumerate(asked))
    rows = []
    for kind in dict.fromkeys(k for k, _ in results):
        mine = [bad for k, bad in results if k == kind]
        rows.append((f'{kind:20}{len(mine):5} tried: {sum(mine)} found', sum(mine)))
    return rows
