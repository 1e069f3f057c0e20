# Times of the package, for ../bench.sh: the fastest of several repetitions, in seconds. ../fixture/bench.c describes the data.
#
#   predict_1m            predicts 1,000,000 cells
#   problem_10m_double    creates a tensor from vectors of 10,000,000 entries, and a problem
library(s3cmtf)

columns <- function(dims, count) {
  i <- seq_len(count) - 1
  list(first = as.integer((i * 7919) %% dims[1]) + 1L, second = as.integer((i * 104729) %% dims[2]) + 1L,
    third = as.integer(i %% dims[3]) + 1L, values = i %% 5 + 1)
}

fastest <- function(repeats, run) {
  seconds <- replicate(repeats, {
    gc()
    start <- as.numeric(Sys.time())
    run()
    as.numeric(Sys.time()) - start
  })
  min(seconds)
}

small <- c(10000, 5000, 50)
cells <- columns(small, 1e6)
training <- lapply(cells, head, 200000)
model <- s3cmtf(with(training, coo_tensor(first, second, third, values = values, dims = small)), model = "cp", rank = 16,
  epochs = 2, seed = 7)
cat(sprintf("predict_1m %.6f\n", fastest(30, function() predict(model, cells[1:3]))))

large <- c(1e6, 1e5, 100)
entries <- columns(large, 1e7)
cat(sprintf("problem_10m_double %.6f\n", fastest(4, function() {
  tensor <- with(entries, coo_tensor(first, second, third, values = values, dims = large))
  problem <- .Call(s3cmtf:::r_problem_new, tensor$handle, list())
})))
