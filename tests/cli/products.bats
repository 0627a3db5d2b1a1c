#!/usr/bin/env bats
# Whose products linear layers take: oneDNN's, or those of a CBLAS that is found at run time. The libraries here are made for the test: a plain
# one, one that computes nothing, which is the fastest of all, and one that sleeps.
load common

cblas() { # cblas FOLDER BODY: a libopenblas.so.0
    mkdir -p "$1"
    cat >"$1/cblas.c" <<.
int usleep(unsigned us);
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb, float beta,
                 float *c, int ldc)
{
    $2
}
const char *openblas_get_config(void) { return "OpenBLAS 9.9 made for a test"; }
.
    "${CC:-cc}" -O1 -shared -fPIC -o "$1/libopenblas.so.0" "$1/cblas.c"
    # The machine's own ones have no part in this.
    "${CC:-cc}" -shared -o "$1/libmkl_rt.so.3" -xc /dev/null
    cp "$1/libmkl_rt.so.3" "$1/libblis.so.4"
}

MODELS=(--batch 8 --steps 3 --warmup 1 --min-time 0 --control none)

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    cblas plain '
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int d = 0; d < k; d++) sum += (double)a[ta == 111 ? i * lda + d : d * lda + i] * b[tb == 111 ? d * ldb + j : j * ldb + d];
            c[i * ldc + j] = (float)(alpha * sum + (beta != 0 ? beta * c[i * ldc + j] : 0));
        }'
    cblas idle ''
    cblas slow 'usleep(20000);'
}

train() { # train LIBRARY MODEL...: whose products, and the losses
    "$EVENLOAD" run "${MODELS[@]}" --products "$1" "${@:2}" --no-record --json --quiet --out out >trial.json
    rm -r out
    python3 -c 'import json; d = json.load(open("trial.json")); print(d["config"]["products"], [round(x, 4) for x in d["loss"]])'
}

@test "a named library's products train as oneDNN's do, with bias, ReLU and sums of gradients" {
    export LD_LIBRARY_PATH=$BATS_FILE_TMPDIR/plain
    local words ours theirs
    for words in "--model mlp --features 30 --hidden 24" "--model gpt --layers 1 --embed 16 --heads 2 --seq 8" \
        "--model gpt --layers 1 --embed 16 --heads 2 --seq 8 --mode tp --devices 2 --launcher own"; do
        read -ra words <<<"$words"
        ours=$(train openblas "${words[@]}")
        theirs=$(train onednn "${words[@]}")
        echo "$ours; $theirs"
        [[ $ours == openblas* && $theirs == onednn* && ${ours#* } == "${theirs#* }" ]]
    done
    [[ $("$EVENLOAD" devices) == *"BLAS     yes  OpenBLAS 9.9"* ]]
}

@test "auto takes what is faster, and says it; a slower one is left; ranks of mpirun do not try" {
    [[ $(LD_LIBRARY_PATH=$BATS_FILE_TMPDIR/idle train auto --model mlp) == openblas* ]]
    [[ $(LD_LIBRARY_PATH=$BATS_FILE_TMPDIR/slow train auto --model mlp) == onednn* ]]
    [[ $(LD_LIBRARY_PATH=$BATS_FILE_TMPDIR/idle OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 train auto --model mlp) == onednn* ]]
    # The record's command names it, so that the same is done again.
    LD_LIBRARY_PATH=$BATS_FILE_TMPDIR/idle "$EVENLOAD" run "${MODELS[@]}" --model mlp --quiet --out kept >/dev/null
    [[ $(json kept/results.json 'd["trials"][0]["config"]["products"]') == openblas ]]
}

@test "libraries that are not there, and devices that have other products, are refused" {
    export LD_LIBRARY_PATH=$BATS_FILE_TMPDIR/idle
    refuses "no MKL with CBLAS (libmkl_rt.so.3) is found" "$EVENLOAD" run --products mkl --out x
    refuses "--products: other libraries than oneDNN are for cpu devices in f32" "$EVENLOAD" run --products blis --precision bf16 --out x
    refuses "--products" "$EVENLOAD" run --products atlas --out x
    [[ ! -e x ]]
}
