#include "data_facts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/data/record.hpp>
#include <dtrain/train/weights.hpp>

namespace dtrain::job {
namespace {

constexpr std::size_t kEdge = 1 << 20;

std::string hash_of_edges(const Path& file) {
  const MappedFile mapped(file);
  const ByteView bytes = mapped.bytes();
  const std::size_t edge = std::min(bytes.size(), kEdge);
  Sha256 hash;
  hash.update(bytes.first(edge));
  hash.update(bytes.last(edge));
  return hash.hex();
}

Json facts_of(const Path& file) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(file, error);
  if (error) {
    throw DataError(fmt::format("{}: cannot be read: {}", file.string(), error.message()),
                    "copy the data there, or let --prepare do it");
  }
  const Path index = data::index_path(file);
  const bool indexed = std::filesystem::exists(index, error);
  return Json::object({{"path", file.string()},
                       {"bytes", std::uint64_t{bytes}},
                       {"index_sha256", indexed ? sha256_hex(bytes_of(read_file(index))) : hash_of_edges(file)}});
}

// The version of a file behind a URL: none of it is on this machine.
Json far_facts_of(const Path& file, net::ObjectStore& store) {
  const net::ObjectState state = store.state(file.string());
  return Json::object({{"path", file.string()}, {"bytes", state.size}, {"etag", state.etag}});
}

// The files of a set, or its name alone if they are not on this machine.
std::vector<Path> files_of(const Path& set, const std::shared_ptr<net::ObjectStore>& store = {}) try {
  return data::find_records(set.string(), store);
} catch (const DataError&) {
  return {set};
}

void add_facts(const Path& set, const std::shared_ptr<net::ObjectStore>& store, Json& facts) {
  for (const Path& file : files_of(set, store)) {
    std::error_code error;
    if (data::is_remote(file)) {
      facts.push_back(far_facts_of(file, *store));
    } else if (std::filesystem::exists(file, error)) {
      facts.push_back(facts_of(file));
    } else {
      facts.push_back(Json::object({{"path", file.string()}}));
    }
  }
}

// Throws DataError for a value that differs here. The name is not compared: it may be that of a whole set.
void compare(const Json& expected, const Json& here) {
  for (const auto& [key, value] : expected.as_object()) {
    if (key == "path" || here.at(key) == value) continue;
    throw DataError(fmt::format("{}: other data than where the job was begun: {} is {} instead of {}",
                                here.at("path").as_string(), key, here.at(key).dump(), value.dump()),
                    "copy the data there again, or let --prepare do it");
  }
}

}  // namespace

Json data_facts(const config::TrainSources& sources, const std::optional<Path>& weights,
                const std::shared_ptr<net::ObjectStore>& store) {
  Json facts = Json::array();
  add_facts(sources.train, store, facts);
  if (sources.validation) add_facts(*sources.validation, store, facts);
  // A URL names their hash.
  if (weights && !data::is_remote(*weights)) add_facts(train::file_of_weights(*weights), store, facts);
  return facts;
}

Json check_data_facts(const Json& facts) {
  Json seen = Json::array();
  for (const Json& expected : facts.as_array()) {
    const Path set = expected.at("path").as_string();
    if (data::is_remote(set)) continue;
    for (const Path& file : files_of(set)) {
      const Json here = facts_of(file);
      compare(expected, here);
      seen.push_back(here);
    }
  }
  return seen;
}

void check_far_facts(const Json& facts, net::ObjectStore& store) {
  for (const Json& expected : facts.as_array()) {
    const std::string& path = expected.at("path").as_string();
    if (!data::is_remote(path)) continue;
    const net::ObjectState now = store.state(path);
    const auto refuse_other = [&](const char* what, const std::string& was, const std::string& is) {
      if (was == is) return;
      throw DataError(fmt::format("{}: was replaced since the job was begun: its {} was {}, now it is {}",
                                  data::shown_path(path).string(), what, was, is),
                      "put the old object back, or begin the job again");
    };
    refuse_other("ETag", expected.at("etag").as_string(), now.etag);
    refuse_other("size", expected.at("bytes").dump(), std::to_string(now.size));  // all that some servers tell of it
  }
}

std::optional<std::uint64_t> count_records(const Path& set) {
  if (data::is_remote(set)) return std::nullopt;
  std::uint64_t records = 0;
  for (const Path& file : files_of(set)) {
    const Path index = data::index_path(file);
    std::error_code error;
    if (!std::filesystem::exists(index, error)) return std::nullopt;
    records += static_cast<std::uint64_t>(std::ranges::count(read_file(index), '\n'));
  }
  return records;
}

}  // namespace dtrain::job
