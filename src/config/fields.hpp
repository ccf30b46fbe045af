// Structs as JSON objects, from one list of fields for both directions. For a struct S there is, beside the code that
// reads and writes it,
//
//   template <typename Fields> void fields(Fields& each, S& value) { each("batch_size", value.batch_size); ... }
//
// FieldWriter and FieldReader are the two values of Fields. The names in the list are a stored format: they belong to
// the fields and stay when an option of the command line is renamed.
#pragma once

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/enum_names.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>

namespace dtrain::config {

// How single values are written. An enum is written by its name: named() below.
inline Json field_json(bool value) { return value; }
inline Json field_json(const std::string& value) { return value; }
inline Json field_json(const Path& value) { return value.string(); }
template <std::integral T>
Json field_json(T value) {
  return static_cast<std::int64_t>(value);
}
template <std::floating_point T>
Json field_json(T value) {
  return static_cast<double>(value);
}
template <typename Rep, typename Period>
Json field_json(std::chrono::duration<Rep, Period> value) {
  return std::chrono::duration<double>(value).count();  // seconds
}
template <typename T>
Json field_json(const std::optional<T>& value) {
  return value ? field_json(*value) : Json();
}
template <typename T>
Json list_json(const T& values) {
  Json list = Json::array();
  for (const auto& value : values) list.push_back(field_json(value));
  return list;
}
template <typename T>
Json field_json(const std::vector<T>& values) {
  return list_json(values);
}
template <typename T, std::size_t N>
Json field_json(const std::array<T, N>& values) {
  return list_json(values);
}

inline void read_field(const Json& json, bool& value) { value = json.as_bool(); }
inline void read_field(const Json& json, std::string& value) { value = json.as_string(); }
inline void read_field(const Json& json, Path& value) { value = json.as_string(); }
template <std::integral T>
void read_field(const Json& json, T& value) {
  value = static_cast<T>(json.as_integer());
}
template <std::floating_point T>
void read_field(const Json& json, T& value) {
  value = static_cast<T>(json.as_number());
}
template <typename Rep, typename Period>
void read_field(const Json& json, std::chrono::duration<Rep, Period>& value) {
  value =
      std::chrono::duration_cast<std::chrono::duration<Rep, Period>>(std::chrono::duration<double>(json.as_number()));
}
template <typename T>
void read_field(const Json& json, std::optional<T>& value) {
  value.reset();
  if (!json.is_null()) read_field(json, value.emplace());
}
template <typename T>
void read_field(const Json& json, std::vector<T>& values) {
  values.clear();
  for (const Json& item : json.as_array()) read_field(item, values.emplace_back());
}
template <typename T, std::size_t N>
void read_field(const Json& json, std::array<T, N>& values) {
  if (json.as_array().size() != N) throw DataError(fmt::format("expected a list of {} values", N));
  for (std::size_t i = 0; i < N; ++i) read_field(json.as_array()[i], values[i]);
}

class FieldWriter {
 public:
  explicit FieldWriter(Json& object) : object_(object) {}
  template <typename T>
  void operator()(const char* name, T& value) {
    if constexpr (requires { fields(*this, value); }) {
      Json inner = Json::object();
      FieldWriter writer(inner);
      fields(writer, value);
      object_[name] = std::move(inner);
    } else {
      object_[name] = field_json(value);
    }
  }
  // An enum with a table of names.
  template <typename Enum, std::size_t N>
  void named(const char* name, Enum& value, const EnumName<Enum> (&names)[N]) {
    object_[name] = dtrain::enum_name(names, value);
  }

 private:
  Json& object_;
};

// A field that the object lacks keeps its value. finish() throws DataError for a field that is in no list: the document
// comes from another version.
class FieldReader {
 public:
  FieldReader(const Json& object, std::string path) : object_(object), path_(std::move(path)) {}
  template <typename T>
  void operator()(const char* name, T& value) {
    known_.insert(name);
    const Json* found = object_.find(name);
    if (!found) return;
    if constexpr (requires { fields(*this, value); }) {
      FieldReader inner(*found, path_ + "." + name);
      fields(inner, value);
      inner.finish();
    } else {
      read_in_place(name, *found, value);
    }
  }
  template <typename Enum, std::size_t N>
  void named(const char* name, Enum& value, const EnumName<Enum> (&names)[N]) {
    known_.insert(name);
    const Json* found = object_.find(name);
    if (!found) return;
    const auto known = dtrain::enum_value(names, found->as_string());
    if (!known) throw DataError(fmt::format("{}.{}: this dtrain knows no '{}'", path_, name, found->as_string()));
    value = *known;
  }
  void finish() const {
    for (const auto& [name, value] : object_.as_object()) {
      if (!known_.contains(name)) throw DataError(fmt::format("{}.{}: this dtrain knows no such field", path_, name));
    }
  }

 private:
  template <typename T>
  void read_in_place(const char* name, const Json& json, T& value) {
    try {
      read_field(json, value);
    } catch (const Error& error) {
      throw DataError(fmt::format("{}.{}: {}", path_, name, error.what()));
    }
  }

  const Json& object_;
  const std::string path_;
  std::set<std::string_view> known_;
};

template <typename Struct>
Json write_fields(Struct value) {
  Json object = Json::object();
  FieldWriter writer(object);
  fields(writer, value);
  return object;
}

// `into` has the values of fields that the object lacks. `what` begins the path in errors.
template <typename Struct>
Struct read_fields(const Json& object, Struct into, const std::string& what) {
  FieldReader reader(object, what);
  fields(reader, into);
  reader.finish();
  return into;
}

}  // namespace dtrain::config
