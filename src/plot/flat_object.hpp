// An object of numbers and words on one line, read without making values of it: a long training has millions of lines.
#pragma once

#include <charconv>
#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>

namespace dtrain::plot {

class FlatObjectReader {
 public:
  explicit FlatObjectReader(std::string_view line) : rest_(line) {}

  // Calls number(name, value) for members that are numbers, with NaN for null, and word(name, text) for strings without
  // escapes and for true and false. Members of other kinds are passed over. Returns false for what is no whole object;
  // some of its members may have been passed on then.
  template <typename Number, typename Word>
  bool read(const Number& number, const Word& word) {
    if (!take('{')) return false;
    if (take('}')) return ends();
    do {
      const auto name = quoted();
      if (!name || !take(':') || rest_.empty()) return false;
      if (!read_value(*name, number, word)) return false;
    } while (take(','));
    return take('}') && ends();
  }

 private:
  template <typename Number, typename Word>
  bool read_value(std::string_view name, const Number& number, const Word& word) {
    skip_blanks();
    if (rest_.empty()) return false;
    const char first = rest_.front();
    if (first == '"') {
      const auto text = quoted();
      if (text) word(name, *text);
      return text.has_value();
    }
    if (first == '{' || first == '[') return skip_nested();
    if (take_word("null")) {
      number(name, std::numeric_limits<double>::quiet_NaN());
      return true;
    }
    for (const std::string_view truth : {"true", "false"}) {
      if (!take_word(truth)) continue;
      word(name, truth);
      return true;
    }
    double value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (end == rest_.data() || error == std::errc::invalid_argument) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    number(name, error == std::errc() ? value : std::numeric_limits<double>::quiet_NaN());
    return true;
  }

  void skip_blanks() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t' || rest_.front() == '\r'))
      rest_.remove_prefix(1);
  }
  bool take(char wanted) {
    skip_blanks();
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take_word(std::string_view wanted) {
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(wanted.size());
    return true;
  }
  bool ends() {
    skip_blanks();
    return rest_.empty();
  }
  // As it stands in the file, escapes and all.
  std::optional<std::string_view> quoted() {
    if (!take('"')) return std::nullopt;
    for (std::size_t at = 0; at < rest_.size(); ++at) {
      if (rest_[at] == '\\') {
        ++at;
      } else if (rest_[at] == '"') {
        const std::string_view text = rest_.substr(0, at);
        rest_.remove_prefix(at + 1);
        return text;
      }
    }
    return std::nullopt;
  }
  bool skip_nested() {
    int depth = 0;
    while (!rest_.empty()) {
      if (rest_.front() == '"') {
        if (!quoted()) return false;
        continue;
      }
      if (rest_.front() == '{' || rest_.front() == '[') ++depth;
      if (rest_.front() == '}' || rest_.front() == ']') --depth;
      rest_.remove_prefix(1);
      if (depth == 0) return true;
    }
    return false;
  }

  std::string_view rest_;
};

}  // namespace dtrain::plot
