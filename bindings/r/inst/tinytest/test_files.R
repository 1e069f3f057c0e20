source("helper.R")
tensor <- as_coo_tensor(rating ~ user + film + month, named_ratings())

path <- scratch("ratings.coo")
write_coo(tensor, path)
for (mapped in c(TRUE, FALSE)) {
  opened <- open_coo(path, mapped = mapped, modes = tensor$modes)
  expect_equal(opened$labels, tensor$labels)
  expect_equal(unname(as.data.frame(opened)), unname(as.data.frame(tensor)))
}
expect_equal(open_coo(path, verify = FALSE)$modes, c("mode1", "mode2", "mode3"))
expect_error(open_coo(path, modes = "user"), class = "s3cmtf_BAD_ARGUMENT")

# Splits of a file and of entries in memory.
for (source in list(opened, tensor)) {
  prefix <- scratch("part")
  parts <- split_coo(source, prefix, test = 0.2, valid = 0.1, seed = 3)
  expect_equal(names(parts), c("train", "test", "valid"))
  expect_equal(vapply(parts, function(part) nrow(as.data.frame(part)), 0L), c(train = 420L, test = 120L, valid = 60L))
  expect_equal(parts$test$labels, tensor$labels)
  expect_true(file.exists(paste0(prefix, ".mode1.tsv")))
}
latest <- split_coo(tensor, scratch("latest"), test = 0.2, last_per = "user", by = "month")
expect_true(min(tapply(as.data.frame(latest$test)$month, as.data.frame(latest$test)$user, min), na.rm = TRUE) > 3)
expect_error(split_coo(tensor, scratch("x"), last_per = "user"), class = "s3cmtf_BAD_ARGUMENT")

# Faults.
twice <- coo_tensor(c(1, 1, 2), c(1, 1, 2), values = c(1, 3, NaN))
expect_equal(check_coo(twice)[c("not_finite", "duplicate_cells")], c(not_finite = 1, duplicate_cells = 1))
fixed <- scratch("fixed.coo")
expect_equal(fix_coo(twice, fixed), c(dropped = 1, merged = 1))
expect_equal(as.data.frame(open_coo(fixed))$value, 2)
fix_coo(twice, fixed, keep = "last")
expect_equal(as.data.frame(open_coo(fixed))$value, 3)

# Text.
csv <- scratch("ratings.csv")
write.csv(named_ratings(), csv, row.names = FALSE)
converted <- sub("csv$", "coo", csv)
convert_coo(csv, converted, columns = c("user", "film", "month"), value = "rating")
expect_equal(open_coo(converted)$labels[[2]], unique(named_ratings()$film))
expect_error(open_coo(csv, columns = c("film", "month"), value = "rating"), pattern = "strings", class = "s3cmtf_error")
numbers <- scratch("numbers.csv")
write.csv(fixture_ratings(), numbers, row.names = FALSE)
expect_equal(dim(open_coo(numbers, columns = c("film", "month"), value = "rating")), c(40L, 6L))
expect_error(open_coo(csv, colums = "film"), class = "s3cmtf_BAD_ARGUMENT")
expect_error(open_coo(csv, columns = "nothing"), class = "s3cmtf_error")

# A fit of a mapped file uses its names.
model <- s3cmtf(opened, rank = 2, epochs = 2)
expect_equal(rownames(factors(model, "film")), tensor$labels[[2]])
expect_equal(nrow(recommend(model, "film", list(user = "u3"), n = 4)), 4)
expect_equal(factors(s3cmtf(path, rank = 2, epochs = 2)), factors(model), check.attributes = FALSE)

# Damaged and missing files.
damaged <- scratch("damaged.coo")
bytes <- readBin(path, raw(), file.size(path))
bytes[length(bytes) - 5] <- xor(bytes[length(bytes) - 5], as.raw(1))
writeBin(bytes, damaged)
expect_error(open_coo(damaged), class = "s3cmtf_BAD_FILE")
expect_error(open_coo(scratch("none.coo")), pattern = "no such file", class = "s3cmtf_BAD_FILE")

# Modes of files have numbers as names.
genres <- fixture_matrix()
rownames(genres) <- paste0("f", 1:40)
model <- s3cmtf(path, list(mode2 = coupled(genres, "full", weight = 1)), rank = 2, epochs = 2)
expect_equal(names(recommend(model, "mode2", list(mode1 = "u3"), n = 4)), c("mode1", "rank", "mode2", "score"))
