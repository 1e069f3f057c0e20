s3cmtf_options <- function() {
  table <- as.data.frame(.Call(r_option_table), stringsAsFactors = FALSE)
  table$type <- factor(table$type)
  table
}

s3cmtf_presets <- function() .Call(r_presets)

s3cmtf_version <- function() .Call(r_version)

# The text of an option as the library parses it: "true", "0.001", "10,10,4".
option_text <- function(value, name) {
  if (is.logical(value) && length(value) == 1 && !is.na(value)) return(if (value) "true" else "false")
  if (is.factor(value)) value <- as.character(value)
  if (is.character(value) && !anyNA(value) && length(value) > 0) return(paste(value, collapse = ","))
  if (!is.numeric(value) || length(value) == 0 || anyNA(value)) {
    bad_argument("the value of option ", name, " must be numbers, strings, or TRUE or FALSE, without NA")
  }
  whole <- is.finite(value) & value == trunc(value) & abs(value) < 2^63
  paste(ifelse(whole, sprintf("%.0f", value), number_text(value)), collapse = ",")
}

# The shortest of 15 or 17 digits that is the same number.
number_text <- function(value) {
  short <- sprintf("%.15g", value)
  ifelse(is.finite(value) & as.numeric(short) != value, sprintf("%.17g", value), short)
}

# Options in the form that the C code expects: preset, names and texts. Later ones replace earlier ones.
prepare_options <- function(options, dots) {
  if (is.character(options)) options <- as.list(options)
  if (!is.null(options) && !is.list(options)) bad_argument("options must be a named list")
  all <- c(options, dots)
  if (length(all) > 0 && (is.null(names(all)) || any(names(all) == ""))) {
    bad_argument("options are given by name, such as rank = 10; one argument has no name")
  }
  all <- all[!vapply(all, is.null, NA)]
  all <- all[!duplicated(gsub("-", "_", names(all)), fromLast = TRUE)]
  preset <- all$preset
  all$preset <- NULL
  list(
    preset = if (is.null(preset)) NULL else check_string(preset, "preset"),
    names = as.character(names(all)),
    values = vapply(names(all), function(name) option_text(all[[name]], name), "", USE.NAMES = FALSE)
  )
}

# Options as a list of values of their types: logical, integer or numeric. "auto", choices and integers that R cannot represent
# stay texts.
typed_options <- function(texts) {
  table <- s3cmtf_options()
  types <- as.character(table$type[match(names(texts), table$name)])
  stats::setNames(Map(option_value, texts, types), names(texts))
}

option_value <- function(text, type) {
  if (type == "logical" && text %in% c("true", "false")) return(text == "true")
  if (!type %in% c("integer", "integers", "real", "reals")) return(text)
  numbers <- suppressWarnings(as.numeric(strsplit(text, ",", fixed = TRUE)[[1]]))
  if (length(numbers) == 0 || anyNA(numbers)) return(text)
  if (type %in% c("real", "reals")) return(numbers)
  if (any(numbers > 2^53)) text else if (all(numbers <= .Machine$integer.max)) as.integer(numbers) else numbers
}

# Lines NAME=VALUE as a named list.
parse_lines <- function(text) {
  lines <- strsplit(text, "\n", fixed = TRUE)[[1]]
  lines <- lines[grepl("=", lines, fixed = TRUE) & !startsWith(lines, "#")]
  values <- as.list(sub("^[^=]*=", "", lines))
  names(values) <- sub("=.*", "", lines)
  values
}
