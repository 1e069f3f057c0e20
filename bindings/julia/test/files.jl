# Binary and text files.

"Calls `f` while no file can become longer than `bytes`, as on a full disk."
function with_file_limit(f, bytes)
    limit_of_files, signal = 1, 25
    old = Ref((UInt64(0), UInt64(0)))
    ccall(:getrlimit, Cint, (Cint, Ptr{Cvoid}), limit_of_files, old)
    # The signal of a write beyond the limit would end the process.
    handler = ccall(:signal, Ptr{Cvoid}, (Cint, Ptr{Cvoid}), signal, Ptr{Cvoid}(1))
    ccall(:setrlimit, Cint, (Cint, Ptr{Cvoid}), limit_of_files, Ref((UInt64(bytes), old[][2])))
    try
        return f()
    finally
        ccall(:setrlimit, Cint, (Cint, Ptr{Cvoid}), limit_of_files, old)
        ccall(:signal, Ptr{Cvoid}, (Cint, Ptr{Cvoid}), signal, handler)
    end
end

mktempdir() do folder
    path = joinpath(folder, "ratings.coo")
    save(ratings(), path)
    for mapped in (true, false), verify in (true, false)
        tensor = Tensor(path; mapped=mapped, verify=verify)
        @test collect(indices(tensor, 2)) == films && collect(values(tensor)) == stars
    end
    save(ratings(), path; type=Float64)
    @test values(Tensor(path)) isa AbstractVector{Float64}

    @testset "names beside files" begin
        odd = Tensor((film=["tab\there", "back\\slash", "line\nend"], month=1:3, value=1:3))
        save(odd, joinpath(folder, "odd.coo"))
        @test isfile(joinpath(folder, "odd.mode1.tsv")) && !isfile(joinpath(folder, "odd.mode2.tsv"))
        @test labels(Tensor(joinpath(folder, "odd.coo")), 1) == labels(odd, :film)
        # A name with several dots has names files of its own.
        save(odd, joinpath(folder, "odd.train.coo"))
        @test labels(Tensor(joinpath(folder, "odd.train.coo")), 1) == labels(odd, :film)
        @test row_names(joinpath(folder, "odd.mode1.tsv")) == labels(odd, :film)
    end

    @testset "names beside models" begin
        model = joinpath(folder, "films.s3m")
        named = quick_fit(Tensor(ratings_table; value=:stars))
        save(named, model)
        @test isfile(joinpath(folder, "films.s3m.mode2.tsv")) && labels(load(model), 2) == labels(named, :film)
        # Names do not outlive the model that they belong to.
        save(quick_fit(), model)
        @test labels(load(model), 2) === nothing
    end

    @testset "names of matrix columns" begin
        target = joinpath(folder, "kinds.s3m")
        genres = CoupledMatrix(:film, (film=string.("film ", 1:40), genre=repeat(["", "dr\tama"], 20), value=ones(40)); kind=:full, weight=1)
        coupled = quick_fit(Tensor(ratings_table); matrices=[CoupledMatrix(:month, (1:6, ones(Int, 6), ones(6)); kind=:full, weight=1), genres])
        save(coupled, target)
        @test read(target * ".matrix2.tsv", String) == "index\tname\n1\t\n2\tdr\\tama\n" && !isfile(target * ".matrix1.tsv")
        names(model) = [column.name for column in concepts(model, :film)[1].largest_columns]
        @test "" in names(coupled) || "dr\tama" in names(coupled)
        @test names(load(target)) == names(coupled)
        save(quick_fit(Tensor(ratings_table)), target)
        @test !isfile(target * ".matrix2.tsv") && isfile(target * ".mode2.tsv")
    end

    @testset "the empty name" begin
        target = joinpath(folder, "empty.s3m")
        named = Tensor((film=["", "b", "", "c"], month=["x", "y", "z", ""], value=1.0:4.0))
        save(quick_fit(named; rank=1), target)
        loaded = load(target)
        @test labels(loaded, :film) == ["", "b", "c"] && labels(loaded, :month) == ["x", "y", "z", ""]
        @test predict(loaded, ("", "")) == predict(loaded, (1, 4)) && "" in similar(loaded, :film, "b").names
        save(named, joinpath(folder, "empty.coo"))
        @test Tensor((mode1=["c", ""], mode2=["", "x"], value=1:2); like=Tensor(joinpath(folder, "empty.coo"))).labels[1].rows[""] == 1
    end

    @testset "names of a tensor that is replaced" begin
        target = joinpath(folder, "replaced.coo")
        save(Tensor((film=["a", "b"], month=["x", "y"], year=["1", "2"], value=1:2); strings=[:year]), target)
        write(joinpath(folder, "replaced.model.tsv"), "another file")
        save(Tensor((film=["a", "b"], month=1:2, value=1:2)), target)
        @test filter(startswith("replaced."), readdir(folder)) == ["replaced.coo", "replaced.mode1.tsv", "replaced.model.tsv"]
        @test cd(() -> save(ratings(), "replaced.coo"), folder) == "replaced.coo" && !isfile(joinpath(folder, "replaced.mode1.tsv"))
    end

    @testset "a model is not mapped" begin
        target = joinpath(folder, "cut.s3m")
        save(quick_fit(), target)
        read_model, expected = load(target), predict(quick_fit(), (1, 1, 1))
        open(io -> truncate(io, 0), target, "r+")
        @test predict(read_model, (1, 1, 1)) == expected
    end

    @testset "names that cannot be written" begin
        named = quick_fit(Tensor(ratings_table))
        # Before the model: the old file stays, and no temporary file is left.
        mktempdir() do other
            model = joinpath(other, "films.s3m")
            save(quick_fit(; rank=3), model)
            old, files = read(model), readdir(other)
            wrong = Any[nothing, S3CMTF.Labels(["a"]), S3CMTF.Labels(["nul\0"])]
            @test occursin("is not UTF-8", message(() -> save(S3CMTF.Model(named.handle, named.modes, wrong, named.matrix_labels), model)))
            @test old == read(model) && readdir(other) == files
            @test thrown(() -> save(Tensor(ratings_table), joinpath(other, "absent", "x.coo"))) isa S3CMTFError
        end
        Sys.islinux() && mktempdir() do other
            long = Tensor((film=string.("film ", repeat("x", 100), 1:2000), month=ones(Int, 2000), value=ones(2000)))
            target = joinpath(other, "long.coo")
            failure = with_file_limit(() -> thrown(() -> save(long, target)), 20_000)
            @test failure isa S3CMTFError && occursin("long.mode1.tsv", failure.message) && isempty(readdir(other))
            save(long, target)
            @test labels(Tensor(target), 1) == labels(long, :film)
        end
        for bad in ("\xff\xfe", "nul\0")
            @test occursin("is not UTF-8", message(() -> Tensor((film=[bad], month=[1], value=[1.0]))))
        end
    end

    @testset "text" begin
        csv = joinpath(folder, "visits.csv")
        write(csv, "zone,day,count\nnorth,1,5\nsouth,2,3\nnorth,3,4\n")
        convert_file(csv, joinpath(folder, "visits.coo"))
        visits = Tensor(joinpath(folder, "visits.coo"))
        @test labels(visits, 1) == ["north", "south"] && collect(values(visits)) == [5, 3, 4]
        # Ids keep their rows in a later file; modes count from 1.
        write(joinpath(folder, "later.csv"), "zone,day,count\nsouth,1,5\n")
        later = Tensor(joinpath(folder, "later.csv"); names=1 => joinpath(folder, "visits.mode1.tsv"))
        @test collect(indices(later, 1)) == [2]
        write(joinpath(folder, "m.tns"), "0 0 1.5\n2 1 2.5\n")
        @test size(Tensor(joinpath(folder, "m.tns"); zero_based=true)) == (3, 2)
        @test size(Tensor(joinpath(folder, "m.tns"); zero_based=true, dims=(5, 4))) == (5, 4)
        @test occursin("delimeter", message(() -> Tensor(csv; delimeter=";")))
    end

    @testset "split and fix" begin
        tensor = Tensor(path)
        parts = split_file(tensor, joinpath(folder, "part"); test=0.2, valid=0.1, seed=1)
        @test nnz(Tensor(parts.test)) == 120 && nnz(Tensor(parts.valid)) == 60 && nnz(Tensor(parts.train)) == 420
        @test split_file(tensor, joinpath(folder, "part2"); test=0.2, latest=1 => 3).valid === nothing
        save(Tensor(([1, 1, 2], [1, 1, 2]), [1.0, 3.0, 5.0]), joinpath(folder, "double.coo"))
        fixed = joinpath(folder, "fixed.coo")
        @test fix(Tensor(joinpath(folder, "double.coo")), fixed) == (dropped=0, merged=1)
        @test collect(values(Tensor(fixed))) == [2.0, 5.0]
        for call in (() -> fix(ratings(), fixed), () -> split_file(ratings(), joinpath(folder, "part3"); test=0.2))
            @test occursin("save() it, then open it", message(call))
        end
    end

    @testset "bad files" begin
        @test thrown(() -> Tensor(joinpath(folder, "absent.coo"))) isa S3CMTFError
        damaged = read(path)
        damaged[end-3] = ~damaged[end-3]
        write(joinpath(folder, "damaged.coo"), damaged)
        failure = thrown(() -> Tensor(joinpath(folder, "damaged.coo")))
        @test failure isa S3CMTFError && statusname(failure) == "S3CMTF_BAD_FILE"
        @test thrown(() -> load(path)) isa S3CMTFError
    end
end
