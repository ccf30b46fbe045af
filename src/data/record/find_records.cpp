#include <fmt/format.h>
#include <fnmatch.h>
#include <glob.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>

#include <dtrain/base/error.hpp>
#include <dtrain/base/releaser.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/record.hpp>

namespace dtrain::data {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

std::string_view take_digits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  const std::string_view digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
}

// Runs of digits by their number, everything else by its bytes.
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

constexpr const char* kPatternMarks = "*?[";

// The objects whose URLs begin so.
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
  std::erase_if(files, [&](const Path& file) { return ::fnmatch(pattern.c_str(), file.c_str(), FNM_PATHNAME) != 0; });
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

std::optional<std::uint64_t> shard_number(const std::string& prefix, const Path& file) {
  const std::string stem = file.stem().string();
  const std::string lead = Path(prefix).filename().string() + "_";
  if (file.extension() != ".rec" || !stem.starts_with(lead)) return std::nullopt;
  const std::string_view digits = std::string_view(stem).substr(lead.size());
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) return std::nullopt;
  const auto number = parse_integer(digits);
  return number ? std::optional(static_cast<std::uint64_t>(*number)) : std::nullopt;
}

std::vector<Path> files_beside(const std::string& prefix) {
  const Path folder = Path(prefix).has_parent_path() ? Path(prefix).parent_path() : Path(".");
  std::vector<Path> files;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    files.push_back(Path(prefix).parent_path() / entry.path().filename());
  }
  return files;
}

// PREFIX_0.rec, PREFIX_1.rec, ... of these files: a missing one must not pass unseen.
std::vector<Path> shards(const std::string& prefix, std::vector<Path> files) {
  std::erase_if(files, [&](const Path& file) { return !shard_number(prefix, file); });
  std::sort(files.begin(), files.end(), naturally_less);
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (shard_number(prefix, files[i]) == i) continue;
    throw DataError(fmt::format("{}_{}.rec is not there, but {} is", prefix, i, files[i].string()),
                    "copy every part of the set, or name the wanted files one by one");
  }
  return files;
}

std::vector<Path> far_files_of(const std::string& part, std::shared_ptr<net::ObjectStore> store) {
  const bool pattern = part.find_first_of(kPatternMarks) != part.npos;
  if (!net::is_s3_url(part) || (part.ends_with(".rec") && !pattern)) return {part};
  if (!store) store = std::make_shared<net::ObjectStore>();
  std::vector<Path> files = pattern ? far_matches(part, *store) : far_files(part, *store);
  if (!pattern && std::find(files.begin(), files.end(), part + ".rec") != files.end()) return {part + ".rec"};
  if (!pattern) files = shards(part, std::move(files));
  if (files.empty())
    throw DataError(fmt::format("{}: no object has such a name", part), "dtrain data cp copies files there");
  return files;
}

std::vector<Path> files_of(const std::string& part, const std::shared_ptr<net::ObjectStore>& store) {
  if (is_remote(part)) return far_files_of(part, store);
  if (std::filesystem::is_regular_file(part)) return {part};
  if (part.find_first_of(kPatternMarks) != part.npos) {
    std::vector<Path> files = matches(part);
    if (files.empty()) throw DataError(fmt::format("{}: no file has such a name", part));
    return files;
  }
  if (std::filesystem::is_regular_file(part + ".rec")) return {part + ".rec"};
  std::vector<Path> files = shards(part, files_beside(part));
  if (files.empty()) throw DataError(fmt::format("{}: no such file", part));
  return files;
}

}  // namespace

std::vector<Path> find_records(const std::string& spec, const std::shared_ptr<net::ObjectStore>& store) {
  if (std::filesystem::is_regular_file(spec)) return {spec};  // also when its name holds a comma
  std::vector<Path> files;
  for (const std::string& part : split(spec, ',')) {
    if (part.empty()) throw UsageError(fmt::format("\"{}\" holds an empty name", spec));
    const std::vector<Path> found = files_of(part, store);
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

}  // namespace dtrain::data
