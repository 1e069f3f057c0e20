# The option table of the library.
table = options()
@test length(table) > 25
@test table[:rank].default == "auto" && table[:rank].type === :integers
@test "gibbs" in table[:algorithm].choices
@test table[:epochs].max == "1000000"
@test !any(option -> isempty(option.help), table)
@test_throws KeyError table[:rnak]
@test :default in presets() && :paper in presets()

used = options(quick_fit(; lambda_reg=0.25, biases=false))
@test used[:rank] == "2" && used[:epochs] == "10" && used[:lambda_reg] == "0.25" && used[:biases] == "false"
@test used[:eta] != "auto"
@test Set(keys(used)) == Set(option.name for option in table)
@test options(fit(ratings(); rank=(2, 3, 2), epochs=2))[:rank] == "2,3,2"
@test options(fit(ratings(); preset=:paper, epochs=2, rank=2))[:biases] == "false"
@test options(fit(ratings(); options="rank=3 epochs=2"))[:rank] == "3"
@test options(fit(ratings(); options=Dict(:rank => 3, :epochs => 4), epochs=2))[:epochs] == "2"
failure = thrown(() -> fit(ratings(); rnak=3))
@test failure isa S3CMTFError && occursin("rank", failure.message)
@test thrown(() -> fit(ratings(); rank=0)) isa S3CMTFError
@test thrown(() -> fit(ratings(); eta=NaN)) isa S3CMTFError
@test thrown(() -> fit(ratings(); eta=nothing)) isa ArgumentError
@test thrown(() -> fit(ratings(); preset=:papr)) isa S3CMTFError
