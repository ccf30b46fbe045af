#include "output_places.hpp"

#include <fmt/format.h>

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

// Whether the folder `inner` is `outer` or lies in it, by where links lead.
static bool is_within(const Path& inner, const Path& outer) {
  std::error_code unreachable;
  const auto place_of = [&](const Path& path) {  // what is not there stays relative without absolute()
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path), unreachable);
  };
  const Path way = place_of(inner).lexically_relative(place_of(outer));
  return !unreachable && !way.empty() && *way.begin() != "..";
}

void refuse_folder_of_inputs(const OutputPlace& output, std::string_view input, const std::vector<Path>& inputs) {
  for (const Path& path : inputs) {
    std::error_code unreachable;
    if (data::is_remote(path) || !std::filesystem::is_directory(path, unreachable)) continue;
    const bool lies_in = is_within(output.place, path), contains = is_within(path, output.place);
    if (!lies_in && !contains) continue;
    std::string_view how = lies_in ? "lies in" : "contains";
    if (lies_in && contains) how = "is the folder of";
    throw UsageError(fmt::format("{} {}: {} {} {}, and the pictures there would be mixed with those that are written",
                                 output.option, output.place.string(), how, input, path.string()),
                     "name a folder apart from it");
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
