# The attack (scripts/attack, docs/trust.md) with small numbers.
load ../cli/common
stderr='' # set by run

@test "an attack of two minutes finds nothing" {
    long "kills, limits, bad uses and fuzzed inputs, about two minutes"
    run "$BATS_TEST_DIRNAME/../../scripts/attack" --evenload "$EVENLOAD" --kills 40 --inputs 2000 --minutes 1
    [[ $status -eq 0 && ${lines[-1]} == "0 found" ]] || show
}

@test "a rank killed in a collective over shm, tcp or mpi is named within five seconds, and nothing of the job is left" {
    [[ -z ${EVENLOAD_SANITIZER:-} ]] || skip "a sanitizer's program takes longer"
    local ranks=3
    if [[ ${EVENLOAD_LONG:-} == 1 ]]; then ranks=50; else echo "# long: 50 ranks killed instead of 3, two minutes" >&3; fi
    run "$BATS_TEST_DIRNAME/../../scripts/attack" --evenload "$EVENLOAD" --only ranks --ranks $ranks --jobs 1
    [[ $status -eq 0 && ${lines[-1]} == "0 found" && $output == *"shm "*"tcp "* ]] || show
}

@test "an attack finds what is injected: a program that hangs, leaves processes and half a file" {
    cat >evenload <<'END'
#!/bin/sh
mkdir -p out && printf '{"trials": [' >out/results.json
case $* in *SLEEP*) ;; *) sleep 30 & sleep 30 ;; esac
END
    chmod +x evenload
    PYTHONPATH=$BATS_TEST_DIRNAME/../../scripts/attack.d run python3 -c '
import os, common
command = common.Command([os.path.abspath("evenload")], "c")
assert command.end(1) is None
command = common.Command([os.path.abspath("evenload"), "SLEEP"], "c")
assert command.end(10) == 0
assert len(common.torn("c")[0]) == 1, common.torn("c")
command = common.Command(["sh", "-c", "sleep 30 & exit 3"], "d")
assert command.end(10) == 3 and list(command.left(0.2).values()) == ["sleep 30"]
command.sweep()
assert not command.left(5)
print("found")'
    [[ $status -eq 0 && $output == found ]] || show
}
