// One node of a dtrain.graph/1 document: what visit_fields reads attributes from, with errors that name the node.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <dtrain/base/json.hpp>

#include "names.hpp"

namespace dtrain::nn {

// Every method throws DataError. `json` outlives the reader.
class NodeReader {
 public:
  NodeReader(const Json& json, std::size_t index);
  const std::string& name() const { return name_; }

  // The member or nullptr; the key counts as known.
  const Json* find(const char* key);
  const std::string& text(const char* key);
  std::vector<std::string> texts(const char* key, const Json& value) const;
  int integer(const char* key, const Json& value) const;

  // The visitor of layer_fields.hpp: a key that is absent leaves the default; a pair may be one number.
  void operator()(const char* key, int& value);
  void operator()(const char* key, bool& value);
  void operator()(const char* key, float& value);
  template <typename Value>
  void rare(const char* key, Value& value, Value) {
    (*this)(key, value);
  }
  void list(const char* key, std::vector<float>& values);
  void pair(const char* key, int& h, int& w);
  void rare_pair(const char* key, int& h, int& w, int) { pair(key, h, w); }
  template <typename Kind>
  void choice(const char* key, Kind& kind, Names names) {
    if (find(key)) kind = static_cast<Kind>(choice_index(key, names));
  }

  // Call last: refuses keys that nothing asked for.
  void require_all_known() const;

  [[noreturn]] void refuse(const std::string& what, std::string hint = {}) const;

 private:
  float number(const char* key, const Json& value) const;
  std::size_t choice_index(const char* key, Names names);

  const Json& json_;
  std::string name_;
  std::vector<const char*> known_;
};

}  // namespace dtrain::nn
