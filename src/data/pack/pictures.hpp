// Pictures with their labels, wherever they come from.
#pragma once

#include <memory>

#include <dtrain/data/pack.hpp>

#include "archive/archive.hpp"

namespace dtrain::data {

class PictureStore {
 public:
  virtual ~PictureStore() = default;
  // Bytes that decode_image() takes. Throws Error. Any thread.
  virtual SourceBytes read(const PackItem& item) const = 0;
  // Changes when the picture does.
  virtual std::string stamp(const PackItem& item) const = 0;
};

struct Pictures {
  PackList list;
  std::unique_ptr<PictureStore> store;
  std::vector<Path> opened = {};  // files that pictures, names or labels are read from, no folders
};

// Throws DataError, UsageError (sources that do not go together).
Pictures open_pictures(const PackOptions& options);

// pack() of what is open already; options.sources are only named in messages.
PackResult pack_opened(const PackOptions& options, Pictures pictures);

// One kind of source each.
Pictures open_archives(const std::vector<Path>& files);
Pictures open_cifar(const std::vector<Path>& files, std::size_t label_bytes);
Pictures open_idx(const std::vector<Path>& files);
Pictures open_records(const PackOptions& options);

std::unique_ptr<PictureStore> make_folder_store(const Path& root);
// Files of an archive by their names, for a list that was made elsewhere. Throws DataError for one that is not there.
std::unique_ptr<PictureStore> make_archive_store(const std::vector<Path>& files, PackList& list);

bool is_picture(const Path& file);  // by its ending
// Whether its first bytes are those of a picture. One that cannot be opened counts, so that reading it says why; files
// of the kernel, which may never end, are empty by their size and do not.
bool begins_as_picture(const Path& file);
// Why the target of a symbolic link cannot be reached; empty: it can be, or the file is no link.
std::string lost_link(const Path& file);
// The same bytes. Throws DataError for a file without any.
SourceBytes with_content(SourceBytes file);
// Why a file is left out that is no picture: its ending. A reason of PackList::skipped, as are:
std::string skipped_by_ending(const Path& file);
inline constexpr const char* kHidden = "hidden";                       // is_of_other_programs()
inline constexpr const char* kLostLink = "a link that leads nowhere";  // without the ending of a picture
inline constexpr const char* kPackedItself = "a link to a folder that is packed itself";

}  // namespace dtrain::data
