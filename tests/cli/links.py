"""links.py FOLDER...: every relative link of the pages in each folder leads to a file, and its #part to a heading there."""
import glob
import os
import re
import sys


def links(path):
    text = re.sub(r'^```.*?^```', '', open(path).read(), flags=re.M | re.S)
    return re.findall(r'\]\(([^)\s]+)\)', text) + re.findall(r'(?:src|href)="([^"]+)"', text)


def parts(path):
    """GitHub's names of the headings: small letters, without what is no letter, digit, _ or -, blanks as -."""
    text = re.sub(r'^```.*?^```', '', open(path).read(), flags=re.M | re.S)
    headings = [re.sub(r'\[([^]]*)\]\([^)]*\)', r'\1', heading) for heading in re.findall(r'^#+ +(.*?) *$', text, re.M)]
    return {re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-') for heading in headings}


bad, n = [], 0
for folder in sys.argv[1:]:
    for page in glob.glob(f'{folder}/*.md') + glob.glob(f'{folder}/docs/*.md') + glob.glob(f'{folder}/results/*.md'):
        for link in links(page):
            if re.match(r'[a-z]+:', link):
                continue
            name, _, part = link.partition('#')
            target = os.path.join(os.path.dirname(page), name) if name else page
            n += 1
            if not os.path.exists(target) or (part and part not in parts(target)):
                bad.append(f'{page}: {link}')
assert not bad, '\n'.join(['links that lead nowhere:', *bad])
assert n > 100 * len(sys.argv[1:]), f'only {n} links were found'
