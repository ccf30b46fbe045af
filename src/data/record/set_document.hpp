// PREFIX.pack.json, which says what `data pack` and `data prepare` made: the files of a set and the names of its
// classes.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/net/objects.hpp>

namespace dtrain::data {

Path set_document_path(const std::string& prefix);
// nullopt: it is not there. Throws DataError where it is no JSON, RemoteError. `store` is needed behind a URL.
std::optional<Json> read_set_document(const std::string& prefix, net::ObjectStore* store);

// What `ask` finds in such a document; empty where the document is damaged or cannot be read: records are whole without
// it. Stopped passes through.
template <typename Ask>
std::invoke_result_t<Ask> advice_of(const Ask& ask) try {
  return ask();
} catch (const Stopped&) {
  throw;
} catch (const Error&) {
  return {};
}

// p of p_train, p_val and p_test, which `data pack` makes of one prefix; nullopt for other names.
std::optional<std::string> without_split(const std::string& prefix);

// p_train_3 is the shard 3 of the split p_train of p: each may be the PREFIX that was packed. The prefix of the shard
// alone comes last: the others are shared by all shards, of which there may be thousands behind a URL.
std::vector<std::string> prefixes_of(const Path& rec);

// After a run wrote `rec` into the set of `own_prefix`: the documents of the other prefixes_of() it, which would give
// it the classes of an earlier set, list it no more, and one that then lists nothing is removed. A damaged one stays.
void forget_in_other_sets(const Path& rec, const std::string& own_prefix);

// The files that `data pack` has yet to make, which stand in the document from the beginning of a run to its end; such
// a file is missing, or of an earlier set with other labels. `folder`: of the document. Throws DataError where it is
// damaged.
std::vector<Path> unfinished_in(const Json& document, const Path& folder);
// `file` is one of those of the document of `prefix`.
[[noreturn]] void refuse_unfinished(const Path& file, const std::string& prefix);

}  // namespace dtrain::data
