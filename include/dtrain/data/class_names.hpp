// What the labels of record files mean: names by label, in the "classes" of PREFIX.pack.json beside the files.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/net/objects.hpp>

namespace dtrain::data {

// The names for these files, as find_records() gives them. PREFIX is a file's name without its ending, without the
// number of a shard and without _train, _val or _test. A file has no names where there is no such JSON file, where it
// lists the files of a set and this one is not among them or has another size, where it is damaged or cannot be read,
// and behind a URL without `store`. Where two such files are about it, the newer one counts, behind a URL the first.
// The names are those of the file that has most. Throws DataError that names the first label for which two files have
// two names. Files without names, and those that name fewer classes, fit.
std::vector<std::string> class_names(std::span<const Path> files, const std::shared_ptr<net::ObjectStore>& store = {});
// The same for commands that only show what is there: where two files have two names for a label, `warn` gets that
// error, and there are no names.
std::vector<std::string> class_names_to_show(std::span<const Path> files,
                                             const std::function<void(const std::string&)>& warn);

struct ClassList {
  std::string where;                      // for messages
  const std::vector<std::string>& names;  // by label; empty: unknown
};
// Throws DataError that names the first class in which the two differ. An unknown list fits every other.
void require_same_classes(const ClassList& expected, const ClassList& found);
// Throws DataError unless there are as many names as a checkpoint without names has classes. An unknown list fits.
void require_class_count(int classes, const ClassList& found);

// Two classes whose names look the same: Unicode writes letters with marks, such as é, in two forms. With what is no
// ASCII byte by byte: "caf\xc3\xa9".
struct LookAlikes {
  std::string one, other;
};
// The first two of these names; nullopt: there are none.
std::optional<LookAlikes> look_alikes(std::span<const std::string> names);

// "3 dog", or "3" where there is no name.
std::string label_text(std::int64_t label, std::span<const std::string> names);

}  // namespace dtrain::data
