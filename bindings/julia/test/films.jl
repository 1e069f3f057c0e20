# The data of the tests: ten ratings by each of 60 users, who like either the even or the odd films. Indices count from 1.
const users = [i ÷ 10 + 1 for i in 0:599]
const films = [(3i + i ÷ 20) % 40 + 1 for i in 0:599]
const months = [i % 6 + 1 for i in 0:599]
const stars = Float32[isodd(u + f) ? 2 : 5 for (u, f) in zip(users, films)]

# Film i has kind i mod 2.
const kinds = (collect(1:40), [i % 2 + 1 for i in 0:39], ones(Float32, 40))

ratings(; options...) = Tensor((users, films, months), stars; modes=(:user, :film, :month), options...)

# The same with names; also the first index columns of tables.
const ratings_table = (user=users, film=string.("film ", films), month=string.("month ", months), stars=stars)

quick_fit(data=ratings(); options...) = fit(data; model=:cp, rank=2, epochs=10, seed=1, options...)

"The exception that `f` throws, or `nothing`."
function thrown(f)
    try
        f()
        return nothing
    catch failure
        return failure
    end
end

message(f) = sprint(showerror, thrown(f))
