#include "own_outputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/image.hpp>

#include "plot/drawing.hpp"

namespace dtrain::cli {
namespace {

bool is_there(const Path& file) {
  std::error_code error;
  return std::filesystem::is_regular_file(file, error) && std::filesystem::file_size(file, error) > 0;
}

std::string beginning_of(const Path& file) {
  std::string text(512, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

[[noreturn]] void refuse_to_replace(std::string_view option, const Path& file, std::string_view kind) {
  throw UsageError(fmt::format("{} {}: is there and is no {}", option, file.string(), kind),
                   "choose another name, or remove that file first");
}

}  // namespace

void require_ending(std::string_view option, const Path& file, std::initializer_list<std::string_view> endings) {
  if (std::ranges::find(endings, file.extension().string()) != endings.end()) return;
  const std::vector<std::string> names(endings.begin(), endings.end());
  throw UsageError(fmt::format("{} {}: the file name must end in {}", option, file.string(), join(names, " or ")),
                   names.size() > 1 ? "the ending chooses the format" : "other formats are not written");
}

void refuse_to_replace_picture(std::string_view option, const Path& file) {
  if (!is_there(file)) return;
  const std::string beginning = beginning_of(file);
  if (data::is_own_png(bytes_of(beginning)) || plot::is_own_svg(beginning)) return;
  refuse_to_replace(option, file, "picture that dtrain drew");
}

void refuse_to_replace_table(std::string_view option, const Path& file, std::initializer_list<std::string_view> heads) {
  if (!is_there(file)) return;
  const std::string beginning = beginning_of(file);
  if (std::ranges::any_of(heads, [&](std::string_view head) { return beginning.starts_with(head); })) return;
  refuse_to_replace(option, file, "table that dtrain wrote");
}

}  // namespace dtrain::cli
