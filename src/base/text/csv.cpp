#include <dtrain/base/csv.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>

namespace dtrain {
namespace {

// Takes the text apart, row after row.
class CsvReader {
 public:
  CsvReader(std::string_view text, std::string_view source) : text_(text), source_(source) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  }

  bool at_end() const { return at_ == text_.size(); }

  CsvRow row() {
    CsvRow row{line_, {field()}};
    while (take(',')) row.fields.push_back(field());
    if (!at_end()) end_line();
    return row;
  }

 private:
  bool take(char wanted) {
    if (at_end() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  void end_line() {
    take('\r');
    if (take('\n') || text_[at_ - 1] == '\r') ++line_;
  }

  std::string field() { return take('"') ? quoted() : plain(); }

  std::string plain() {
    const std::size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
    const std::string_view found = text_.substr(at_, end - at_);
    at_ = end;
    return std::string(found);
  }

  std::string quoted() {
    const std::size_t begin = line_;
    std::string found;
    for (; !at_end(); ++at_) {
      if (text_[at_] == '"' && !text_.substr(at_ + 1).starts_with('"')) {
        ++at_;
        return found + plain();
      }
      if (text_[at_] == '"') ++at_;  // the first of two
      if (text_[at_] == '\n') ++line_;
      found += text_[at_];
    }
    throw DataError(fmt::format("{}: line {}: the quote does not end", source_, begin),
                    "write a quote inside a field in quotes twice");
  }

  std::string_view text_, source_;
  std::size_t at_ = 0, line_ = 1;
};

}  // namespace

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

std::vector<CsvRow> parse_csv(std::string_view text, std::string_view source) {
  std::vector<CsvRow> rows;
  for (CsvReader reader(text, source); !reader.at_end();) {
    CsvRow row = reader.row();
    if (row.fields.size() > 1 || !row.fields.front().empty()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace dtrain
