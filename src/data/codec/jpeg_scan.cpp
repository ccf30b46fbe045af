#include "jpeg_scan.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <jerror.h>

// The beginning of a structure that libjpeg declares in a header of its own, which not every system installs.
struct jpeg_entropy_decoder {
  void (*start_pass)(j_decompress_ptr);
  boolean (*decode_mcu)(j_decompress_ptr, JBLOCKROW* blocks);  // nullptr: passes over the unit
};

namespace dtrain::data {
namespace {

constexpr std::uint8_t kMarker = 0xFF, kFirstRestart = 0xD0;
constexpr unsigned kRestartMarkers = 8;
// To make the tables takes as long as these bytes save.
constexpr std::size_t kWorthTheTables = 4096;

[[noreturn]] void refuse(jpeg_decompress_struct& jpeg, int warning) {
  jpeg.err->msg_code = warning;
  jpeg.err->emit_message(reinterpret_cast<j_common_ptr>(&jpeg), -1);
  std::abort();
}

// Lossless pictures have other spectra. A file's size alone decides, never what was decoded before: libjpeg lets some
// damage pass.
bool is_usual(jpeg_decompress_struct& jpeg) {
  return jpeg.progressive_mode == FALSE && jpeg.arith_code == FALSE && jpeg.data_precision == 8 && jpeg.Ss == 0 &&
         jpeg.Se == DCTSIZE2 - 1 && jpeg_has_multiple_scans(&jpeg) == FALSE &&
         jpeg.src->bytes_in_buffer >= kWorthTheTables;
}

HuffmanCodes codes_of(const JHUFF_TBL& table) {
  HuffmanCodes codes;
  std::ranges::copy(table.bits, codes.counts.begin());
  std::ranges::copy(table.huffval, codes.symbols.begin());
  return codes;
}

// The side of the component's blocks after the inverse DCT, in pixels. Versions of libjpeg's interface name it
// differently.
template <typename Component>
int side_of_block(const Component& component) {
  if constexpr (requires { component.DCT_scaled_size; }) {
    return component.DCT_scaled_size;
  } else {
    return component.DCT_h_scaled_size;
  }
}

// The component with the most samples has the smallest blocks.
int least_side_of_block(const jpeg_decompress_struct& jpeg) {
  int least = DCTSIZE;
  for (int i = 0; i < jpeg.num_components; ++i) least = std::min(least, side_of_block(jpeg.comp_info[i]));
  return least;
}

}  // namespace

void JpegScan::take_over(jpeg_decompress_struct& jpeg) {
  if (!is_usual(jpeg)) return;
  make_tables(jpeg);
  plan_blocks(jpeg);
  first_column_ = column_ = 0;
  last_column_ = jpeg.MCUs_per_row - 1;
  restarts_ = 0;
  begin_interval(jpeg);
  jpeg.client_data = this;
  jpeg.entropy->decode_mcu = decode_mcu;
}

// The same columns of units as in jpeg_crop_scanline(). A single component has units of one block.
void JpegScan::keep_columns(const jpeg_decompress_struct& jpeg, JDIMENSION left, JDIMENSION columns) {
  const int blocks = jpeg.num_components == 1 ? 1 : jpeg.max_h_samp_factor;
  const auto width = static_cast<JDIMENSION>(blocks * least_side_of_block(jpeg));
  first_column_ = left / width;
  last_column_ = (left + columns - 1) / width;
}

void JpegScan::make_tables(const jpeg_decompress_struct& jpeg) {
  for (int i = 0; i < jpeg.comps_in_scan; ++i) {
    const jpeg_component_info& component = *jpeg.cur_comp_info[i];
    const int dc = component.dc_tbl_no, ac = component.ac_tbl_no;
    dc_[static_cast<std::size_t>(dc)].make(codes_of(*jpeg.dc_huff_tbl_ptrs[dc]), HuffmanUse::dc);
    ac_[static_cast<std::size_t>(ac)].make(codes_of(*jpeg.ac_huff_tbl_ptrs[ac]), HuffmanUse::ac);
  }
}

void JpegScan::plan_blocks(const jpeg_decompress_struct& jpeg) {
  block_count_ = jpeg.blocks_in_MCU;
  for (int i = 0; i < block_count_; ++i) {
    const int index = jpeg.MCU_membership[i];
    const jpeg_component_info& component = *jpeg.cur_comp_info[index];
    Need need = side_of_block(component) > 1 ? Need::all : Need::mean;
    if (component.component_needed == FALSE) need = Need::nothing;
    blocks_[static_cast<std::size_t>(i)] = {.component = index,
                                            .need = need,
                                            .dc = &dc_[static_cast<std::size_t>(component.dc_tbl_no)],
                                            .ac = &ac_[static_cast<std::size_t>(component.ac_tbl_no)]};
  }
}

// Allocates for the first interval alone, which has the most bytes behind it: later ones are begun below libjpeg, which
// no exception may leave.
void JpegScan::begin_interval(jpeg_decompress_struct& jpeg) {
  take_bytes(*jpeg.src);
  means_ = {};
  left_ = jpeg.restart_interval;
}

void JpegScan::pass_restart_marker(jpeg_decompress_struct& jpeg) {
  jpeg_source_mgr& source = *jpeg.src;
  const auto* at = source.next_input_byte;
  const auto* const end = at + source.bytes_in_buffer;
  while (at < end && *at == kMarker) ++at;
  if (at == end) refuse(jpeg, JWRN_JPEG_EOF);
  const unsigned wanted = restarts_++ % kRestartMarkers;
  if (*at != kFirstRestart + wanted) {
    jpeg.err->msg_parm.i[0] = *at;
    jpeg.err->msg_parm.i[1] = static_cast<int>(wanted);
    refuse(jpeg, JWRN_MUST_RESYNC);
  }
  source.next_input_byte = ++at;
  source.bytes_in_buffer = static_cast<std::size_t>(end - at);
}

// Up to the next marker, where libjpeg is to read on. A byte of 0xFF is followed by 0 (T.81, F.1.2.3); more of 0xFF
// before the 0 fill, as before a marker.
void JpegScan::take_bytes(jpeg_source_mgr& source) {
  const std::uint8_t* from = source.next_input_byte;
  const std::uint8_t* const end = from + source.bytes_in_buffer;
  const std::size_t room = source.bytes_in_buffer + kScanMargin;
  if (bytes_.size() < room) bytes_.resize(room);
  std::uint8_t* to = bytes_.data();
  while (from < end) {
    const auto* mark =
        static_cast<const std::uint8_t*>(std::memchr(from, kMarker, static_cast<std::size_t>(end - from)));
    const auto* const stop = mark ? mark : end;
    to = std::copy(from, stop, to);
    from = stop;
    while (mark && mark < end && *mark == kMarker) ++mark;
    if (!mark || mark == end || *mark != 0) break;
    *to++ = kMarker;
    from = mark + 1;
  }
  std::fill_n(to, kScanMargin, std::uint8_t{0});
  end_ = to;
  scan_ = {.at = bytes_.data()};
  source.next_input_byte = from;
  source.bytes_in_buffer = static_cast<std::size_t>(end - from);
}

boolean JpegScan::decode_mcu(j_decompress_ptr jpeg, JBLOCKROW* blocks) {
  JpegScan& self = *static_cast<JpegScan*>(jpeg->client_data);
  if (jpeg->restart_interval > 0 && self.left_-- == 0) {
    self.pass_restart_marker(*jpeg);
    self.begin_interval(*jpeg);
    --self.left_;
  }
  const bool is_kept = self.column_ >= self.first_column_ && self.column_ <= self.last_column_;
  self.read_unit(is_kept ? blocks : nullptr);
  if (++self.column_ == jpeg->MCUs_per_row) self.column_ = 0;
  if (self.scan_.damaged) refuse(*jpeg, JWRN_HUFF_BAD_CODE);
  if (self.is_read_past_the_end()) refuse(*jpeg, jpeg->src->bytes_in_buffer == 0 ? JWRN_JPEG_EOF : JWRN_HIT_MARKER);
  return TRUE;
}

void JpegScan::read_unit(JBLOCKROW* blocks) {
  ScanBits scan = scan_;  // in registers
  for (int i = 0; i < block_count_; ++i) {
    const Block& block = blocks_[static_cast<std::size_t>(i)];
    const Need need = blocks ? block.need : Need::nothing;
    scan.refill();
    std::uint32_t& mean = means_[static_cast<std::size_t>(block.component)];
    mean += static_cast<std::uint32_t>(read_difference(*block.dc, scan));
    if (need != Need::nothing) (*blocks[i])[0] = static_cast<std::int16_t>(mean);
    if (need == Need::all) {
      read_block(*block.ac, scan, *blocks[i]);
    } else {
      block.ac->make_leaps();
      pass_over_block(*block.ac, scan);
    }
  }
  scan_ = scan;
}

}  // namespace dtrain::data
