#include "predict_pictures.hpp"

#include <fmt/format.h>

#include <iostream>
#include <iterator>

#include <dtrain/base/text.hpp>
#include <dtrain/data/picture_files.hpp>

namespace dtrain::cli {
namespace {

constexpr const char* kReasonsAbove = "the warnings above give the reasons";

// Names from standard input end with a line, or with a zero byte as `find -print0` writes them.
std::vector<std::string> names_on_input() {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  const bool zeros = text.find('\0') != text.npos;
  std::vector<std::string> names = split(text, zeros ? '\0' : '\n');
  for (std::string& name : names) {
    if (!zeros && name.ends_with('\r')) name.pop_back();  // lists from other systems end lines with CRLF
  }
  std::erase(names, "");
  if (names.empty()) throw UsageError("PATH -: standard input names no picture", "give a name on each line");
  return names;
}

void list_one(const std::string& name, const std::shared_ptr<net::ObjectStore>& store, ListedPictures& listed) {
  try {
    const data::FoundPictures found = data::find_pictures(name, store);
    listed.files.insert(listed.files.end(), found.files.begin(), found.files.end());
    for (const std::string& problem : found.problems) listed.missing.push_back({name, problem, {}});
  } catch (const DataError& error) {
    listed.missing.push_back({name, error.what(), error.hint()});
  }
}

}  // namespace

ListedPictures list_pictures(const std::vector<Path>& given, const std::shared_ptr<net::ObjectStore>& store) {
  ListedPictures listed;
  for (const Path& path : given) {
    if (path == "-") {
      for (const std::string& name : names_on_input()) list_one(name, store, listed);
    } else {
      list_one(path.string(), store, listed);
    }
  }
  return listed;
}

void refuse_missing_pictures(const std::vector<MissingPicture>& missing) {
  if (missing.size() == 1) throw DataError(missing.front().reason, missing.front().hint);
  throw DataError(fmt::format("none of the {} names stands for a picture", missing.size()), kReasonsAbove);
}

std::string PictureReader::read(const Path& file) {
  try {
    return data::read_picture(file, store_);
  } catch (const Error& error) {
    const MutexLock lock(mutex_);
    ++failures_;
    const auto* const remote = dynamic_cast<const RemoteError*>(&error);
    if (remote && !first_remote_) first_remote_ = *remote;
    throw;
  }
}

std::size_t PictureReader::failures() const {
  const MutexLock lock(mutex_);
  return failures_;
}

std::optional<RemoteError> PictureReader::first_remote() const {
  const MutexLock lock(mutex_);
  return first_remote_;
}

void refuse_unanswered(std::size_t pictures, const std::string& hint, const PictureReader& reader) {
  const std::string what = pictures == 1 ? std::string("the picture has no answer")
                                         : fmt::format("none of the {} pictures has an answer", pictures);
  const auto remote = reader.first_remote();
  const std::string& chosen = remote ? remote->hint() : hint;
  const std::string advice = chosen.empty() ? std::string(kReasonsAbove) : chosen;
  if (remote) throw RemoteError(what, advice);
  throw DataError(what, advice);
}

}  // namespace dtrain::cli
