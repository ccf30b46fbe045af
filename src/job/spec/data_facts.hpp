// What the files of a run must be on every host: as they are where the run was begun.
#pragma once

#include <dtrain/base/json.hpp>

#include "config/train_sources.hpp"

namespace dtrain::job {

// [{"path", "bytes", "index_sha256"}, ...]: of the index, or where there is none of the file's first and last part. Of
// one behind a URL "path", "bytes" and "etag"; of a file that is not here only its path is known.
Json data_facts(const config::TrainSources& sources, const std::shared_ptr<net::ObjectStore>& store);
// Compares the files of this machine with these facts, and returns what was looked at. Throws DataError that names the
// first file that is missing or another one.
Json check_data_facts(const Json& facts);
// Likewise those behind URLs, which all workers must read in one version: DataError names both ETags.
void check_far_facts(const Json& facts, net::ObjectStore& store);

}  // namespace dtrain::job
