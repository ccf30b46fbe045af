#include "file_patterns.hpp"

#include <fnmatch.h>
#include <glob.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <string_view>

#include <dtrain/base/releaser.hpp>

namespace dtrain::data {
namespace {

constexpr const char* kPatternMarks = "*?[";

std::string_view take_digits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  const std::string_view digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
}

}  // namespace

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

bool is_pattern(const std::string& text) { return text.find_first_of(kPatternMarks) != text.npos; }

bool fits_pattern(const Path& file, const std::string& pattern) {
  return ::fnmatch(pattern.c_str(), file.c_str(), FNM_PATHNAME) == 0;
}

bool naturally_less(const Path& left, const Path& right) {
  const std::string a_text = left.string(), b_text = right.string();
  std::string_view a = a_text, b = b_text;
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const std::string_view x = take_digits(a), y = take_digits(b);
      if (x != y) return x.size() != y.size() ? x.size() < y.size() : x < y;
    } else {
      if (a.front() != b.front()) return a.front() < b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.empty() && (!b.empty() || a_text < b_text);
}

std::vector<Path> far_files(const std::string& beginning, net::ObjectStore& store) {
  const std::string bucket = net::parse_s3_url(beginning).bucket;
  std::vector<Path> files;
  store.list(beginning, [&](const net::ObjectEntry& entry) {
    files.emplace_back(net::S3Url{bucket, entry.key}.text());
  });
  return files;
}

std::vector<Path> far_matches(const std::string& pattern, net::ObjectStore& store) {
  std::vector<Path> files = far_files(pattern.substr(0, pattern.find_first_of(kPatternMarks)), store);
  std::erase_if(files, [&](const Path& file) { return !fits_pattern(file, pattern); });
  std::sort(files.begin(), files.end(), naturally_less);
  return files;
}

std::vector<Path> matches(const std::string& pattern) {
  glob_t found{};
  const int error = ::glob(pattern.c_str(), 0, nullptr, &found);
  const std::unique_ptr<glob_t, Releaser<::globfree>> owner(&found);
  std::vector<Path> files;
  for (std::size_t i = 0; error == 0 && i < found.gl_pathc; ++i) files.emplace_back(found.gl_pathv[i]);
  std::sort(files.begin(), files.end(), naturally_less);
  return files;
}

}  // namespace dtrain::data
