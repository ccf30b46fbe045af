// Where commands write: what is wrong with a place is said before the work.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>

namespace dtrain::cli {

struct OutputPlace {
  std::string_view option;  // with its dashes
  const Path& place;
};

// `kind`: "file" or "folder". Throws UsageError for a URL.
void require_on_this_machine(const OutputPlace& output, std::string_view kind);
// Throws UsageError where the output would replace the file that `input` names.
void refuse_to_replace(const OutputPlace& output, const OutputPlace& input);

// Removes what killed processes left of a file that this one will write, or of files whose names begin so.
void remove_abandoned(const Path& file);
// Writes it whole.
void write_output(const Path& file, std::string_view content);

// Throws UsageError where `output`, a folder, is a folder among `inputs`, contains one or lies in one: what is written
// would be taken for input the next time, or be mixed with it.
void refuse_folder_of_inputs(const OutputPlace& output, std::string_view input, const std::vector<Path>& inputs);
// Throws UsageError where one of `pictures` lies in `output` itself, in a folder directly below it, which would stand
// among those of the classes, or anywhere below the folder of one of `classes`.
void refuse_folder_of_pictures(const OutputPlace& output, const std::vector<std::string>& classes,
                               const std::vector<Path>& pictures);

// Each class has a folder of its name below --out-dir. Names may come from anywhere: throws DataError for one that
// leads out of it.
void require_class_folders(const Path& out_dir, const std::vector<std::string>& names);

// Answers with the files that write() wrote; with none, before it goes on, where write() throws: what was computed may
// be the work of hours.
void answer_with_files(const std::function<std::vector<Path>()>& write,
                       const std::function<void(const std::vector<Path>&)>& answer);

Json paths_json(const std::vector<Path>& paths);

}  // namespace dtrain::cli
