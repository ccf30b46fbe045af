// Comma-separated values (RFC 4180): tables for spreadsheets and scripts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

// The text as one field: in quotes where it needs them.
std::string csv_field(std::string_view text);

struct CsvRow {
  std::size_t line = 0;  // where the row begins, counted from 1
  std::vector<std::string> fields;
};
// The rows of a text, without empty ones. A field in quotes may hold commas, line ends and doubled quotes. A byte order
// mark in front is passed over. Throws DataError naming `source` and the line where a quote does not end.
std::vector<CsvRow> parse_csv(std::string_view text, std::string_view source);

}  // namespace dtrain
