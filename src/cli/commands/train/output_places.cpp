#include "output_places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include <dtrain/base/temporaries.hpp>
#include <dtrain/data/picture_files.hpp>
#include <dtrain/data/remote.hpp>

#include "cli/printable.hpp"

namespace dtrain::cli {

void require_on_this_machine(const OutputPlace& output, std::string_view kind) {
  if (!data::is_remote(output.place)) return;
  throw UsageError(
      fmt::format("{} {}: is no {} of this machine", output.option, data::shown_path(output.place).string(), kind),
      fmt::format("name a {} here; `dtrain data cp` copies it to s3://", kind));
}

void refuse_to_replace(const OutputPlace& output, const OutputPlace& input) {
  std::error_code error;  // one of them is not there
  if (!std::filesystem::equivalent(output.place, input.place, error) || error) return;
  throw UsageError(fmt::format("{} {}: is the file of {}, which it would replace", output.option, output.place.string(),
                               input.option),
                   "name another file");
}

void remove_abandoned(const Path& file) {
  if (!data::is_remote(file)) remove_abandoned_temporaries(file.parent_path(), file.filename().string());
}

void write_output(const Path& file, std::string_view content) {
  remove_abandoned(file);
  write_file_atomic(file, content);
}

// The way from the folder `outer` to `inner`, by where links lead; "." where they are one. Empty: `inner` lies outside.
static Path way_within(const Path& inner, const Path& outer) {
  std::error_code unreachable;
  const auto place_of = [&](const Path& path) {  // what is not there stays relative without absolute()
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path), unreachable);
  };
  const Path way = place_of(inner).lexically_relative(place_of(outer));
  return unreachable || way.empty() || *way.begin() == ".." ? Path() : way;
}

[[noreturn]] static void refuse_mixture(const OutputPlace& output, std::string_view how) {
  throw UsageError(fmt::format("{} {}: {}, and the pictures there would be mixed with those that are written",
                               output.option, output.place.string(), how),
                   "name a folder apart from it");
}

void refuse_folder_of_inputs(const OutputPlace& output, std::string_view input, const std::vector<Path>& inputs) {
  for (const Path& path : inputs) {
    std::error_code unreachable;
    if (data::is_remote(path) || !std::filesystem::is_directory(path, unreachable)) continue;
    const bool lies_in = !way_within(output.place, path).empty(), contains = !way_within(path, output.place).empty();
    if (!lies_in && !contains) continue;
    std::string_view how = lies_in ? "lies in" : "contains";
    if (lies_in && contains) how = "is the folder of";
    refuse_mixture(output, fmt::format("{} {} {}", how, input, path.string()));
  }
}

void refuse_folder_of_pictures(const OutputPlace& output, const std::vector<std::string>& classes,
                               const std::vector<Path>& pictures) {
  std::set<Path> folders;
  for (const Path& picture : pictures) {
    const Path folder = picture.has_parent_path() ? picture.parent_path() : Path(".");
    if (data::is_remote(picture) || !folders.insert(folder).second) continue;
    const Path way = way_within(folder, output.place);
    if (way.empty()) continue;
    const bool is_beside_classes = std::next(way.begin()) == way.end();
    if (is_beside_classes || std::ranges::find(classes, way.begin()->string()) != classes.end())
      refuse_mixture(output, fmt::format("contains {}", picture.string()));
  }
}

void require_class_folders(const Path& out_dir, const std::vector<std::string>& names) {
  for (std::size_t label = 0; label < names.size(); ++label) {
    if (data::can_add_file(Path(names[label]) / "picture")) continue;
    throw DataError(fmt::format("--out-dir {}: class {} is named \"{}\": its pictures would be written outside of the "
                                "folder",
                                out_dir.string(), label, printable_word(names[label])),
                    "leave --out-dir out: --csv and --json name the class of each picture; or train with another name");
  }
}

void answer_with_files(const std::function<std::vector<Path>()>& write,
                       const std::function<void(const std::vector<Path>&)>& answer) {
  std::vector<Path> files;
  try {
    files = write();
  } catch (const Error&) {
    answer({});
    throw;
  }
  answer(files);
}

Json paths_json(const std::vector<Path>& paths) {
  Json list = Json::array();
  for (const Path& path : paths) list.push_back(path.string());
  return list;
}

}  // namespace dtrain::cli
