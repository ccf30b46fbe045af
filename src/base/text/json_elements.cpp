#include <dtrain/base/json_elements.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>

namespace dtrain {
namespace {

class ElementScanner {
 public:
  ElementScanner(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  // Goes through "open item, item, ... close"; read_item() begins at an item and ends behind it.
  template <typename ReadItem>
  void run(char open, char close, const ReadItem& read_item) {
    skip_space();
    take(open);
    skip_space();
    if (!next_is(close)) {
      for (;;) {
        skip_space();
        read_item();
        skip_space();
        if (next_is(close)) break;
        take(',');
      }
    }
    take(close);
    skip_space();
    if (at_ != text_.size()) fail();
  }

  std::string_view string() {
    const std::size_t begin = at_;
    take('"');
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    take('"');
    return text_.substr(begin + 1, at_ - begin - 2);
  }

  void colon() {
    skip_space();
    take(':');
    skip_space();
  }

  std::string_view value() {
    const std::size_t begin = at_;
    if (next_is('"')) {
      string();
    } else if (next_is('{') || next_is('[')) {
      skip_container();
    } else {
      at_ = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
    }
    if (at_ == begin) fail();
    return text_.substr(begin, at_ - begin);
  }

 private:
  [[noreturn]] void fail() const { throw DataError(fmt::format("{}: not valid JSON at byte {}", source_, at_ + 1)); }

  bool next_is(char c) const { return at_ < text_.size() && text_[at_] == c; }

  void take(char c) {
    if (!next_is(c)) fail();
    ++at_;
  }

  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  void skip_container() {
    std::size_t depth = 0;
    do {
      at_ = std::min(text_.find_first_of("\"{}[]", at_), text_.size());
      if (at_ == text_.size()) fail();
      if (text_[at_] == '"') {
        string();
        continue;
      }
      const bool opens = text_[at_] == '{' || text_[at_] == '[';
      depth = opens ? depth + 1 : depth - 1;
      ++at_;
    } while (depth > 0);
  }

  std::string_view text_, source_;
  std::size_t at_ = 0;
};

}  // namespace

void for_each_member(std::string_view text, std::string_view source,
                     const std::function<void(std::string_view name, std::string_view value)>& visit) {
  ElementScanner scanner(text, source);
  scanner.run('{', '}', [&] {
    const std::string_view name = scanner.string();
    scanner.colon();
    visit(name, scanner.value());
  });
}

void for_each_element(std::string_view text, std::string_view source,
                      const std::function<void(std::string_view value)>& visit) {
  ElementScanner scanner(text, source);
  scanner.run('[', ']', [&] { visit(scanner.value()); });
}

}  // namespace dtrain
