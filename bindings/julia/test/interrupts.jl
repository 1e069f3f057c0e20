# Ctrl-C during a long call: it is cancelled and throws an InterruptException, and the session goes on.
function interrupted(calls...)
    script = """
        Base.exit_on_sigint(false)
        push!(LOAD_PATH, "@stdlib")
        using S3CMTF
        ratings = Tensor((rand(1:500, 50_000), rand(1:500, 50_000)), rand(50_000))
        interrupt() = ccall(:kill, Cint, (Cint, Cint), getpid(), Base.SIGINT)
        # In the middle of a call, from another process.
        interrupt_later() = run(`sh -c "sleep 0.5; kill -INT \$(getpid())"`; wait=false)
        outcome(call) =
            try
                call()
                "no exception"
            catch failure
                failure isa InterruptException ? "interrupted" : sprint(showerror, failure)
            end
        small = fit(ratings; rank=2, epochs=1)
        for call in [$(join(string.("() -> ", calls), ", "))]
            println(outcome(call))
        end
        println(fit(ratings; rank=2, epochs=1) isa Model ? "goes on" : "")
        """
    output = IOBuffer()
    command = `$(Base.julia_cmd()) --startup-file=no --project=$(Base.active_project()) -e $script`
    process = run(pipeline(ignorestatus(command); stdout=output, stderr=stderr); wait=false)
    timer = Timer(_ -> process_running(process) && kill(process, Base.SIGKILL), 120)
    wait(process)
    close(timer)
    return String(take!(output))
end

if Sys.iswindows()
    println("SKIPPED: interrupts are tested by signals")
else
    @test interrupted(
        "fit(state -> (state.epoch >= 2 && interrupt(); false), ratings; model=:cp, rank=4, epochs=1_000_000)",
        "(interrupt_later(); fit(ratings; model=:cp, rank=4, epochs=1_000_000))",
        "tune(trial -> (interrupt(); sleep(0.2); false), ratings; trials=50, rank=2, epochs=3)",
        "(interrupt_later(); while true; clusters(small, 1; references=1_000, threads=1); end)",
        "(interrupt_later(); similar(small, 1, repeat(1:500, 10_000); top=100, threads=1))",
        "(interrupt_later(); while true; plan(ratings; rank=8); end)",
        "(interrupt_later(); while true; evaluate(small, ratings); end)") == "interrupted\n"^7 * "goes on\n"
end
