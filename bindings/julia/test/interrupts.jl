# Ctrl-C during a fit and a search: the call is cancelled and throws an InterruptException, and the session goes on.
function interrupted(code)
    script = """
        Base.exit_on_sigint(false)
        push!(LOAD_PATH, "@stdlib")
        using S3CMTF
        ratings = Tensor((rand(1:500, 50_000), rand(1:500, 50_000)), rand(50_000))
        interrupt() = ccall(:kill, Cint, (Cint, Cint), getpid(), Base.SIGINT)
        try
            $code
            println("no exception")
        catch failure
            println(failure isa InterruptException ? "interrupted" : failure)
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
    @test interrupted("fit(state -> (state.epoch >= 2 && interrupt(); false), ratings; model=:cp, rank=4, epochs=1_000_000)") ==
        "interrupted\ngoes on\n"
    # In the middle of a wait, from another process.
    @test interrupted("""run(`sh -c "sleep 0.5; kill -INT \$(getpid())"`; wait=false)
        fit(ratings; model=:cp, rank=4, epochs=1_000_000)""") == "interrupted\ngoes on\n"
    @test interrupted("tune(trial -> (interrupt(); sleep(0.2); false), ratings; trials=50, rank=2, epochs=3)") ==
        "interrupted\ngoes on\n"
end
