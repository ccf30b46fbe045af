// `data prepare`: published data sets to NAME_train.rec/.idx and NAME_val.rec/.idx.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/data/pack.hpp>

namespace dtrain::data {

struct PrepareOptions {
  std::string name;                                 // one of prepare_names()
  Path out;                                         // folder, made if missing
  std::string from;                                 // folder or URL with the published files; empty: the set's home
  std::optional<Encoding> encoding = std::nullopt;  // nullopt: PNG, not compressed; photographs as they are published
  std::uint64_t seed = 1;                           // of drawn sets, and of the order of photographs
  std::optional<std::uint32_t> train_count = std::nullopt,
                               val_count = std::nullopt;  // of drawn sets; nullopt: the usual
  // Photographs only, as of PackOptions. With shards, NAME_train and NAME_val are prefixes.
  int resize = 0, shards = 1, threads = 1;
  std::optional<int> quality = std::nullopt;
  CocoLabels coco_labels = CocoLabels::largest;
  bool as_folders = false;  // coco: the published folders, unpacked, for other programs, instead of records
  bool force = false;       // write over record files of other content
  // done and total in the unit that is named ("bytes", "records"); called from the calling thread.
  std::function<void(std::string_view what, std::uint64_t done, std::uint64_t total, std::string_view unit)> progress;
};

struct PrepareResult {
  Path train, val;
  std::uint64_t train_records = 0, val_records = 0;
  bool already_there = false;         // files of the same content were complete: nothing was written
  bool of_folders = false;            // train and val are folders, and records the pictures in them
  std::vector<PackProblem> problems;  // photographs that could not be read, which no file holds
};

std::vector<std::string> prepare_names();
// Whether the set is packed from pictures of any size, so that it takes a size, a quality and shards.
bool is_set_of_photographs(const std::string& name);
// Throws UsageError, DataError (file, what is wrong with it), RemoteError (download), Error (disk). Complete or absent.
PrepareResult prepare(const PrepareOptions& options);

}  // namespace dtrain::data
