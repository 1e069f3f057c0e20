# The same factors in C, R, Julia and Python, bit for bit.
source("helper.R")
hex <- function(x) {
  bytes <- writeBin(as.vector(x), raw(), size = 4, endian = "big")
  apply(matrix(as.character(bytes), 4), 2, paste, collapse = "")
}
model <- s3cmtf(rating ~ user + film + month, fixture_ratings(),
  matrices = list(film = coupled(fixture_matrix(), kind = "full")), model = "tucker", rank = 4, epochs = 20, seed = 7)
file <- Sys.getenv("S3CMTF_FIXTURE")
if (file == "") {
  message("skipped: S3CMTF_FIXTURE is not set, factors are not compared with those of C")
} else {
  expected <- strsplit(readLines(file), " ", fixed = TRUE)
  for (n in 1:3) expect_identical(hex(t(factors(model, n))), expected[[n]][-(1:2)])
  expect_identical(hex(aperm(core_tensor(model), 3:1)), expected[[4]][-1])
}

# The same from a tensor, from doubles and with any number of threads.
ratings <- fixture_ratings()
other <- s3cmtf(
  coo_tensor(user = as.numeric(ratings$user), film = ratings$film, month = ratings$month, values = ratings$rating),
  matrices = list(film = coupled(fixture_matrix(), kind = "full")), options = list(model = "tucker", rank = 4, epochs = 20),
  seed = 7, threads = 1
)
expect_identical(factors(other), factors(model))
expect_identical(core_tensor(other), core_tensor(model))
