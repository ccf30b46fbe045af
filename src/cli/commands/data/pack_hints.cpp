#include "pack_hints.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/data/class_names.hpp>
#include <dtrain/net/ssh.hpp>

namespace dtrain::cli {
namespace {

// Whether no picture of a list or a COCO file is beside it.
bool are_elsewhere(const Path& source) {
  const auto format = data::picture_format_by_name(source);
  if (format != data::PictureFormat::list && format != data::PictureFormat::coco) return false;
  try {
    const data::PackList list = data::list_images(source, {});
    const auto is_there = [&](const data::PackItem& item) { return std::filesystem::exists(list.root / item.file); };
    return !list.items.empty() && std::ranges::none_of(list.items, is_there);
  } catch (const DataError&) {
    return false;
  }
}

}  // namespace

std::string pack_with(std::string_view option, const Path& source) {
  return fmt::format("`dtrain data pack {} {}`", net::shell_quoted(source.string()), option);
}

std::string advice_on_root(const PackCommand& command) {
  const Path& source = command.pack.sources.front();
  if (!command.pack.root.empty() || !are_elsewhere(source)) return {};
  return "if the pictures lie elsewhere, " +
         (command.takes_labels ? "name their folder: --root FOLDER" : "use " + pack_with("--root FOLDER", source));
}

void warn_of_look_alikes(const std::vector<std::string>& classes, Reporter& reporter) {
  const auto found = data::look_alikes(classes);
  if (!found) return;
  reporter.warn(
      fmt::format("two classes have names that look the same, {} and {}: Unicode writes letters with marks in "
                  "two forms. Where they are meant to be one class, rename one of the folders and pack again",
                  found->one, found->other));
}

}  // namespace dtrain::cli
