// Finds the first row of each group, by going once through all rows.
#include "flamecore.h"

int64_t flamecore_first_of_groups(const void* group, int32_t size, const int64_t* keys, const int64_t* ties,
                                  int64_t count, int64_t groups, int32_t last, int64_t* row) {
  for (int64_t of = 0; of < groups; of++) row[of] = -1;
  for (int64_t i = 0; i < count; i++) {
    const int64_t of = value_at(group, size, i);
    if (of < 0 || of >= groups) return REFUSED;
    const int64_t best = row[of];
    if (best >= 0 && keys[i] > keys[best]) continue;
    if (best >= 0 && keys[i] == keys[best] && (last ? ties[i] > ties[best] : ties[i] >= ties[best])) continue;
    row[of] = i;
  }
  return count;
}
