// The attributes of one operator of a symbol.json, as visit_attributes reads them, with errors that name the operator.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/names.hpp"

namespace dtrain::nn {

// Attribute of a variable: multiplies the learning rate; 0 freezes it.
inline constexpr const char* kMxnetRateFactor = "__lr_mult__";

// Every method throws DataError. An attribute that is absent or "None" leaves the default.
class AttributeReader {
 public:
  using Attributes = std::vector<std::pair<std::string, std::string>>;
  // `where` is the node's name and its operator. `attributes` outlives the reader.
  AttributeReader(std::string where, const Attributes& attributes)
      : where_(std::move(where)), attributes_(attributes) {}

  void operator()(const char* key, int& value);
  void operator()(const char* key, bool& value);
  void operator()(const char* key, float& value);
  void negated(const char* key, bool& value);
  void pair(const char* key, int& h, int& w);
  void rare_pair(const char* key, int& h, int& w, int) { pair(key, h, w); }
  template <typename Kind>
  void choice(const char* key, Kind& kind, Names names) {
    if (const auto value = find(key)) kind = static_cast<Kind>(choice_index(key, *value, names));
  }
  void fixed(const char* key, const char* text);
  void only(const char* key, const char* text);
  void ignore(const char* key) { known_.push_back(key); }

  // Call last: refuses keys that nothing asked for.
  void require_all_known() const;
  // Refuses a learning rate or weight decay of the variable's own; what else a variable has, it has from its operator.
  void require_no_factors() const;
  bool is_frozen() const;

 private:
  std::optional<std::string> find(const char* key);
  std::size_t choice_index(const char* key, const std::string& value, Names names) const;
  [[noreturn]] void refuse(const std::string& what, std::string hint = {}) const;
  [[noreturn]] void refuse_value(const char* key, const std::string& value, std::string hint = {}) const;

  std::string where_;
  const Attributes& attributes_;
  std::vector<const char*> known_;
};

}  // namespace dtrain::nn
