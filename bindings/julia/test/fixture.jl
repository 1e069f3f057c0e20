# Factors and core of the fixture are those of C, bit for bit.
bits(numbers) = [string(reinterpret(UInt32, number); base=16, pad=8) for number in vec(numbers)]
# Row-major order of an array.
row_major(array) = permutedims(array, ndims(array):-1:1)

path = get(ENV, "S3CMTF_FIXTURE", "")
if isempty(path)
    println("SKIPPED: S3CMTF_FIXTURE is not set; factors are not compared with those of C")
else
    expected = Dict(join(split(line)[1:(startswith(line, "core") ? 1 : 2)], ' ') => line for line in readlines(path))
    model = fit(ratings(); matrices=[CoupledMatrix(:film, kinds; kind=:full)], model=:tucker, rank=4, epochs=20, seed=7)
    for mode in 1:3
        line = split(expected["factor $(mode - 1)"])[3:end]
        @test bits(row_major(factor(model, mode))) == line
        @test bits(row_major(factor(Float32, model, mode))) == line
    end
    @test bits(row_major(core(model))) == split(expected["core"])[2:end]
    @test bits(row_major(core(Float32, model))) == split(expected["core"])[2:end]
end
