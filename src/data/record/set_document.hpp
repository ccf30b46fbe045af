// PREFIX.pack.json, which says what `data pack` and `data prepare` made: the files of a set and the names of its
// classes.
#pragma once

#include <optional>
#include <string>
#include <type_traits>

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

}  // namespace dtrain::data
