// The record files of a prefix before a new set is written: which of them may be replaced or removed.
#pragma once

#include <set>
#include <vector>

#include "pack_plan.hpp"

namespace dtrain::data {

// Those that the plan does not write.
std::vector<Path> not_among(const std::vector<Shard>& shards, std::vector<Path> files);

// Throws UsageError where the set would write over a file that it is made from, or remove one (`left_over`). A set of
// one file may be made from this file: it is replaced once all of it is read.
void refuse_to_replace_sources(const std::vector<Shard>& shards, const std::vector<Path>& left_over,
                               const std::vector<Path>& sources);
// Throws UsageError where a file of the set is there already. `own`: record files of earlier runs, whose index and list
// are no files of others where the records are gone.
void refuse_to_overwrite(const std::vector<Shard>& shards, const std::set<Path>& own);
// Whether its index and its list are there.
bool has_companions(const Path& rec);
// Throws UsageError for files of an earlier set: beside the new one they would be taken for a part of it, with the new
// names of the classes.
void refuse_to_leave(const std::vector<Path>& left_over);
// With its index and its list. Throws Error.
void remove_set_file(const Path& rec);

}  // namespace dtrain::data
