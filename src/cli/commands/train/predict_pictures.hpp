// The pictures of `dtrain predict`: what the names that it was given stand for, and why pictures have no answer.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/net/objects.hpp>

namespace dtrain::cli {

struct MissingPicture {
  std::string name, reason, hint;
  std::string whole() const { return hint.empty() ? reason : reason + "; " + hint; }
};
struct ListedPictures {
  std::vector<Path> files;
  std::vector<MissingPicture> missing;
};
// A path of - stands for names on standard input. Throws UsageError where that holds none.
ListedPictures list_pictures(const std::vector<Path>& given, const std::shared_ptr<net::ObjectStore>& store);
[[noreturn]] void refuse_missing_pictures(const std::vector<MissingPicture>& missing);

// Counts what it cannot read. Any thread.
class PictureReader {
 public:
  explicit PictureReader(std::shared_ptr<net::ObjectStore> store) : store_(std::move(store)) {}

  std::string read(const Path& file);
  std::size_t failures() const;
  // The first failure of another machine or of the way to it.
  std::optional<RemoteError> first_remote() const;

 private:
  const std::shared_ptr<net::ObjectStore> store_;
  mutable Mutex mutex_;
  std::size_t failures_ DTRAIN_GUARDED_BY(mutex_) = 0;
  std::optional<RemoteError> first_remote_ DTRAIN_GUARDED_BY(mutex_);
};

// For the case that none of `pictures` has an answer. `hint` is that of pictures which were read and not decoded, and
// empty where there are none.
[[noreturn]] void refuse_unanswered(std::size_t pictures, const std::string& hint, const PictureReader& reader);

}  // namespace dtrain::cli
