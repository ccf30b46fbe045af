// Which picture goes to which record file, and with what shares.
#pragma once

#include <span>
#include <vector>

#include <dtrain/data/pack.hpp>

namespace dtrain::data {

struct Shard {
  Path rec;
  std::span<const PackItem> items;
};

// Whether the options share the pictures out among training, validation and test.
bool splits(const PackOptions& options);
PackShares shares_of(const PackOptions& options);
// The train_ratio that holds where the options give none.
double usual_train_ratio(const PackOptions& options, const PackList& list);
// Throws SettingError where the options share out pictures that their folders share out already.
void refuse_to_split_again(const PackOptions& options, const PackList& list);
// The options say a train_ratio. Throws SettingError, DataError for a list without pictures.
void check_plan(const PackOptions& options, const PackList& list);
// By the seed alone.
void shuffle_items(const PackOptions& options, std::vector<PackItem>& items);
// Orders the items by their files, which the shards then refer to. Throws UsageError where they are too few.
std::vector<Shard> plan_shards(const PackOptions& options, PackList& list);

}  // namespace dtrain::data
