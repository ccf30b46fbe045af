// Facts about the data files of a run, by which all hosts check that they have the same files.
#pragma once

#include <optional>

#include <dtrain/base/json.hpp>

#include "config/train_sources.hpp"

namespace dtrain::job {

// [{"path", "bytes", "index_sha256"}, ...]: the hash of the index, or without one of the file's first and last part.
// For a file behind a URL: "path", "bytes" and "etag". For a file that is not here: its path.
// `weights`: the file that the run begins with, or the prefix of its checkpoint; with a URL there are no facts of it.
Json data_facts(const config::TrainSources& sources, const std::optional<Path>& weights,
                const std::shared_ptr<net::ObjectStore>& store);
// Compares the files of this machine with these facts, and returns what was looked at. Throws DataError that names the
// first file that is missing or another one.
Json check_data_facts(const Json& facts);
// Likewise those behind URLs, which all workers must read in one version: DataError names both ETags.
void check_far_facts(const Json& facts, net::ObjectStore& store);

// The number of records of a set, by the indexes of its files; nullopt where one has none or is not on this machine.
std::optional<std::uint64_t> count_records(const Path& set);

}  // namespace dtrain::job
