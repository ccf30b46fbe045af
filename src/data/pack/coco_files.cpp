#include "coco_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include <dtrain/base/error.hpp>
#include <dtrain/base/parallel.hpp>
#include <dtrain/data/image.hpp>

#include "archive/archive.hpp"
#include "remote/published_files.hpp"

namespace dtrain::data {
namespace {

std::string tidy_name(const std::string& name) { return Path(name).lexically_normal().string(); }

std::string with_slashes(std::string name) {
  std::ranges::replace(name, '\\', '/');
  return name;
}

std::string last_part(const std::string& name) { return Path(with_slashes(name)).filename().string(); }

// A backslash is a part of some names here, so that it becomes a slash only where the name as it stands does not open.
std::optional<std::string> name_found_in(const Path& folder, const std::string& name) {
  for (const std::string& plain : {tidy_name(name), tidy_name(with_slashes(name))}) {
    std::error_code none;
    if (!plain.empty() && std::filesystem::is_regular_file(folder / plain, none)) return plain;
  }
  return std::nullopt;
}

// The pictures as they are named in one folder.
struct NamedIn {
  Path folder;
  std::vector<std::optional<std::string>> names;  // nullopt: it is not there

  std::ptrdiff_t found() const {
    return std::ranges::count_if(names, [](const auto& name) { return name.has_value(); });
  }
  // Two pictures of one file would be one picture with the objects of both.
  bool names_each() const {
    const std::set<std::optional<std::string>> different(names.begin(), names.end());
    return !names.empty() && found() == std::ssize(names) && different.size() == names.size();
  }
};

template <typename NameOf>
NamedIn look_in(const Path& folder, const std::vector<CocoPicture>& pictures, const NameOf& name_of) {
  NamedIn named{folder, {}};
  for (const CocoPicture& picture : pictures) named.names.push_back(name_found_in(folder, name_of(picture)));
  return named;
}

void take_names(const NamedIn& named, std::vector<CocoPicture>& pictures) {
  for (std::size_t i = 0; i < pictures.size(); ++i) pictures[i].file = named.names[i].value_or(pictures[i].file);
}

std::string shown_folder(const Path& folder) { return folder.empty() ? "." : folder.string(); }

}  // namespace

CocoPlace place_pictures(const Path& root, std::vector<CocoPicture>& pictures) {
  const auto whole = [](const CocoPicture& picture) { return picture.file; };
  if (is_archive(root) && !std::filesystem::is_directory(root)) {
    for (CocoPicture& picture : pictures) picture.file = tidy_name(picture.file);
    return {.root = root, .found_elsewhere = {}, .lost_hint = {}};
  }
  const NamedIn here = look_in(root, pictures, whole);
  for (CocoPicture& picture : pictures) picture.file = tidy_name(picture.file);
  take_names(here, pictures);
  if (here.found() > 0 || pictures.empty()) return {.root = root, .found_elsewhere = {}, .lost_hint = {}};
  const std::string none = fmt::format("no picture is in {} by its \"file_name\"", shown_folder(root));
  const NamedIn above = look_in((root / "..").lexically_normal(), pictures, whole);
  if (above.names_each()) {
    take_names(above, pictures);
    return {.root = above.folder,
            .found_elsewhere = fmt::format("{}; all are in {}, and are taken from there", none, above.folder.string()),
            .lost_hint = {}};
  }
  const NamedIn bare = look_in(root, pictures, [](const CocoPicture& picture) { return last_part(picture.file); });
  if (bare.names_each()) {
    take_names(bare, pictures);
    return {.root = root,
            .found_elsewhere = fmt::format("{}; all are there without the folders in their names, and are taken", none),
            .lost_hint = {}};
  }
  std::string hint = none + ": name the folder to which these names are relative";
  if (above.found() > 0)
    hint += fmt::format("; {} of {} are in {}", above.found(), pictures.size(), above.folder.string());
  if (bare.found() > 0)
    hint += fmt::format("; {} of {} are there without the folders in their names", bare.found(), pictures.size());
  return {.root = root, .found_elsewhere = {}, .lost_hint = hint};
}

void read_missing_sizes(const Path& root, std::vector<CocoPicture>& pictures) {
  for_each_in_parallel(pictures.size(), [&](std::size_t i) {
    CocoPicture& picture = pictures[i];
    std::error_code none;
    if (picture.height > 0 && picture.width > 0) return;
    if (picture.file.empty() || !std::filesystem::is_regular_file(root / picture.file, none)) return;
    try {
      Image image;
      decode_image(map_source(root / picture.file).bytes, kStoredChannels, image);
      picture.height = image.h;
      picture.width = image.w;
    } catch (const Error&) {  // whoever lists the picture says that it has no size
    }
  });
}

}  // namespace dtrain::data
