/*
 * doctor_expiry.c - what the doctor says of TLS files that expire. cmd_doctor.c calls it.
 */
#include "doctor.h"

void ps_finding_expiries(struct ps_finding *finding, const struct ps_expiries *expiries,
                         uint64_t now_s)
{
	char text[PS_EXPIRY_TEXT];

	for (unsigned i = 0; i < expiries->count; i++) {
		const enum ps_expiry_stage stage = ps_expiry_stage(&expiries->list[i], now_s);

		if (stage == PS_EXPIRY_FAR)
			continue;
		ps_finding_add(finding, ", %s", ps_expiry_text(&expiries->list[i], now_s, text));
		ps_finding_fault(finding,
		                 stage == PS_EXPIRY_OVER ? PS_HEALTH_FAIL : PS_HEALTH_WARNING,
		                 "Open connections go on after the end, but new ones are refused: "
		                 "renew it, as PerseasCertificateExpires in the runbook says.");
	}
}
