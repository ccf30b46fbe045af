#include <dtrain/data/class_names.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/data/remote.hpp>

namespace dtrain::data {
namespace {

// p_train_3 is the shard 3 of the split p_train of p: each may be the PREFIX that was packed.
std::vector<std::string> prefixes_of(const Path& rec) {
  std::string stem = Path(rec).replace_extension().string();
  std::vector<std::string> prefixes{stem};
  const auto shorten = [&](std::size_t length) {
    stem = stem.substr(0, length);
    prefixes.push_back(stem);
  };
  const std::size_t mark = stem.rfind('_');
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  if (mark != stem.npos && mark + 1 < stem.size() &&
      std::all_of(stem.begin() + static_cast<std::ptrdiff_t>(mark) + 1, stem.end(), is_digit))
    shorten(mark);
  for (const std::string_view split : {"_train", "_val"}) {
    if (stem.ends_with(split)) {
      shorten(stem.size() - split.size());
      break;
    }
  }
  return prefixes;
}

// One that cannot be read names nothing: the records are whole without it.
std::vector<std::string> names_in(const Path& file) try {
  std::vector<std::string> names;
  const Json document = Json::parse(read_file(file), file.string());
  if (const Json* classes = document.find("classes")) {
    for (const Json& name : classes->as_array()) names.push_back(name.as_string());
  }
  return names;
} catch (const Error&) {
  return {};
}

}  // namespace

std::vector<std::string> class_names(std::span<const Path> files) {
  if (files.empty() || is_remote(files.front())) return {};
  for (const std::string& prefix : prefixes_of(files.front())) {
    std::error_code error;
    const Path file = prefix + ".pack.json";
    if (std::filesystem::is_regular_file(file, error)) return names_in(file);
  }
  return {};
}

std::string label_text(std::int64_t label, std::span<const std::string> names) {
  const bool has_name = label >= 0 && label < std::ssize(names);
  return has_name ? fmt::format("{} {}", label, names[static_cast<std::size_t>(label)]) : fmt::format("{}", label);
}

}  // namespace dtrain::data
